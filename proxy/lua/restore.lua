-- Put back what is spent after the store lost its data, and set the epoch that lets budgeted requests in again.
--
-- KEYS  1 epoch   2 late mark   3.. one a counter
-- ARGV  1 new epoch (empty: only set these counters, more come in another call)
--       2 id of the last stream entry that the ledger held when the sums were read ('0-0': none)
--       3.. two a counter: spent, expiry (ms, 0: never)
-- Only what is spent is set: what is reserved is kept by the reservations made since. Nothing is done when an epoch is
-- there (somebody else was first) or when a request was settled after the sums were read (drain it, then try again).
-- Gives {restored | part | warm | late, now}

local counters = #KEYS - 2
if counters < 0 or #ARGV ~= 2 + counters * 2 then
  return redis.error_reply('ERR restore: ' .. #KEYS .. ' keys do not go with ' .. #ARGV .. ' arguments')
end

local function parts(id)
  local ms, seq = string.match(id, '^(%d+)-(%d+)$')
  return tonumber(ms), tonumber(seq)
end

local now = clock_ms()
if call('EXISTS', KEYS[1]) == 1 then return {'warm', now} end
local late = call('GET', KEYS[2])
if late then
  local late_ms, late_seq = parts(late)
  local seen_ms, seen_seq = parts(ARGV[2])
  if late_ms > seen_ms or (late_ms == seen_ms and late_seq > seen_seq) then return {'late', now} end
end
for i = 1, counters do
  call('HSET', KEYS[2 + i], 's', ARGV[1 + 2 * i])
  if ARGV[2 + 2 * i] ~= '0' then call('PEXPIREAT', KEYS[2 + i], ARGV[2 + 2 * i]) end
end
if ARGV[1] == '' then return {'part', now} end
call('DEL', KEYS[2])
call('SET', KEYS[1], ARGV[1])
return {'restored', now}
