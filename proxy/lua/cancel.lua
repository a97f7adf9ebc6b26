-- Undo an admission whose outcome the caller never learned: give everything back, write no event. Idempotent.
--
-- KEYS  1 reservation record   2 open reservations   3.. one a rule, as for admit.lua
-- ARGV  1 event id   2.. four a rule, as for admit.lua: kind, limit, amount, extra
-- Without a record the admission has not happened; a mark in the record's place keeps it from happening later
-- (for 10 s: after 2 s it is stale by itself).
-- Gives {cancelled | absent, now}

local FIXED_KEYS, FIXED_ARGS, PER_RULE, MARK_MS = 2, 1, 4, 10000
local rules = #KEYS - FIXED_KEYS
if rules < 0 or #ARGV ~= FIXED_ARGS + rules * PER_RULE then
  return redis.error_reply('ERR cancel: ' .. #KEYS .. ' keys do not go with ' .. #ARGV .. ' arguments')
end

local now = clock_ms()
local record = call('GET', KEYS[1])
if not record then call('SET', KEYS[1], 'cancelled', 'PX', MARK_MS) end
if not record or record == 'cancelled' or record == 'settled' then return {'absent', now} end

for i = 1, rules do
  local at = FIXED_ARGS + (i - 1) * PER_RULE
  local key, kind, limit, amount = KEYS[FIXED_KEYS + i], ARGV[at + 1], tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3])
  if kind == 'b' then
    local used = bucket_used(call('GET', key), limit, now)
    write_bucket(key, used - amount * UNITS, now)
  elseif kind == 'w' then
    change_window(key, ARGV[1], amount, 0, now)
  elseif kind == 'l' then
    call('ZREM', key, ARGV[1])
  elseif kind == 'c' then
    local reserved = tonumber(call('HGET', key, 'r') or 0)
    if reserved > 0 then call('HSET', key, 'r', math.max(reserved - amount, 0)) end
  end
end
call('DEL', KEYS[1])
call('ZREM', KEYS[2], ARGV[1])
return {'cancelled', now}
