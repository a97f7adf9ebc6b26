-- Counting, shared: put before each script of this folder (proxy/redis_scripts.py). No KEYS, no ARGV.
--
-- A token bucket of `limit` per minute is kept as what is used of it, in units of 1/60,000 token, so that a millisecond
-- gives back exactly `limit` units and all arithmetic stays in integers below 2^53 (limit <= 1.5e11). Kept as used and
-- not as free, a change of the limit leaves what was used as it was. The text of a bucket is "<used> <at ms>".
-- Numbers are given to commands as numbers (written with all digits); in texts they are formatted with %.0f.

local UNITS, WINDOW_MS, LARGEST = 60000, 60000, 9007199254740991
local call, find, format, tonumber = redis.call, string.find, string.format, tonumber

local function clock_ms()
  local time = call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- Units used at `now`. A clock that went back gives nothing back.
local function bucket_used(text, limit, now)
  if not text then return 0 end
  local gap = find(text, ' ', 1, true)
  local used, elapsed = tonumber(text:sub(1, gap - 1)), now - text:sub(gap + 1)
  if elapsed <= 0 then return used end
  used = used - elapsed * limit
  return used > 0 and used or 0
end

-- Even the deepest debt (twice the limit) is paid back after two minutes: what expires is empty.
local function write_bucket(key, used, now)
  if used > 0 then
    call('SET', key, format('%.0f %.0f', used, now), 'EX', '121')
  else
    call('DEL', key)
  end
end

-- A rolling window is a sorted set: "<amount>:<event id>" scored by its time, and "=" scored by -(total + 1).
local function window_used(key, now)
  local total = call('ZSCORE', key, '=')
  if not total then return 0 end
  total = -tonumber(total) - 1
  for _, member in ipairs(call('ZRANGEBYSCORE', key, 0, now - WINDOW_MS)) do
    total = total - string.match(member, '^%d+')
  end
  return total
end

local function write_window_total(key, total)
  if total > 0 then
    call('ZADD', key, -total - 1, '=')
    call('PEXPIRE', key, WINDOW_MS + 1000)
  else
    call('DEL', key)
  end
end

-- Replace what an event took from a window (after 0: take it out). Nothing when it has already left the window.
local function change_window(key, event, before, after, now)
  local member = format('%.0f:%s', before, event)
  local at = call('ZSCORE', key, member)
  if not at or now - at >= WINDOW_MS then return end
  local total = window_used(key, now)
  call('ZREMRANGEBYSCORE', key, 0, now - WINDOW_MS)
  call('ZREM', key, member)
  if after > 0 then call('ZADD', key, at, format('%.0f:%s', after, event)) end
  write_window_total(key, total - before + after)
end
