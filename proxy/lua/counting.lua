-- Counting, shared: put before each script of this folder that counts (proxy/redis_scripts.py). No KEYS, no ARGV.
--
-- A token bucket of `limit` per minute is kept as what is used of it, in units of 1/60,000 token, so that a millisecond
-- gives back exactly `limit` units and all arithmetic stays in integers below 2^53 (limit <= 1.5e11). Kept as used and
-- not as free, a change of the limit leaves what was used as it was. The text of a bucket is "<used> <at ms>".

local UNITS, WINDOW_MS, LARGEST = 60000, 60000, 9007199254740991

local function clock_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- A number as text with all its digits.
local function whole(number)
  return string.format('%.0f', number)
end

-- Units used at `now`. A clock that went back gives nothing back.
local function bucket_used(text, limit, now)
  if not text then return 0 end
  local used, at = string.match(text, '^(%d+) (%d+)$')
  local elapsed = now - at
  used = tonumber(used)
  if elapsed <= 0 then return used end
  return math.max(used - elapsed * limit, 0)
end

local function write_bucket(key, used, limit, now)
  if used <= 0 then
    redis.call('DEL', key)
  else
    local lives = math.ceil(used / limit) + 1000
    redis.call('SET', key, whole(used) .. ' ' .. whole(now), 'PX', whole(lives))
  end
end

-- A rolling window is a sorted set: "<amount>:<event id>" scored by its time, and "=" scored by -(total + 1).
local function window_used(key, now)
  local total = redis.call('ZSCORE', key, '=')
  if not total then return 0 end
  total = -tonumber(total) - 1
  for _, member in ipairs(redis.call('ZRANGEBYSCORE', key, '0', whole(now - WINDOW_MS))) do
    total = total - string.match(member, '^%d+')
  end
  return total
end

local function write_window_total(key, total)
  if total <= 0 then
    redis.call('DEL', key)
  else
    redis.call('ZADD', key, whole(-total - 1), '=')
    redis.call('PEXPIRE', key, whole(WINDOW_MS + 1000))
  end
end

-- Replace what an event took from a window (0: take it out). Nothing when it has already left the window.
local function change_window(key, event, before, after, now)
  local member = before .. ':' .. event
  local at = redis.call('ZSCORE', key, member)
  if not at then return end
  local total = window_used(key, now)
  redis.call('ZREMRANGEBYSCORE', key, '0', whole(now - WINDOW_MS))
  if redis.call('ZREM', key, member) == 1 then
    if tonumber(after) > 0 then redis.call('ZADD', key, at, after .. ':' .. event) end
    write_window_total(key, total - before + after)
  end
end
