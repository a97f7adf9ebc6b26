-- Read what is used of limits, in one consistent look. Changes nothing.
--
-- KEYS  1 epoch   2.. one a rule
-- ARGV  two a rule: kind, limit (kinds as in admit.lua)
-- Gives {ok, now, epoch, 0, 0, then two numbers a rule: used, reserved}, as admit.lua does

local rules = #KEYS - 1
if rules < 0 or #ARGV ~= rules * 2 then
  return redis.error_reply('ERR read_limits: ' .. #KEYS .. ' keys do not go with ' .. #ARGV .. ' arguments')
end

local now = clock_ms()
local reply = {'ok', now, call('GET', KEYS[1]) or '', 0, 0}
for i = 1, rules do
  local key, kind, used, reserved = KEYS[1 + i], ARGV[2 * i - 1], 0, 0
  if kind == 'b' then
    used = bucket_used(call('GET', key), tonumber(ARGV[2 * i]), now)
  elseif kind == 'w' then
    used = window_used(key, now)
  elseif kind == 'l' then
    used = call('ZCOUNT', key, '(' .. format('%.0f', now), '+inf')
  elseif kind == 'c' then
    local kept = call('HMGET', key, 's', 'r')
    used, reserved = tonumber(kept[1] or 0), tonumber(kept[2] or 0)
  end
  reply[4 + 2 * i], reply[5 + 2 * i] = used, reserved
end
return reply
