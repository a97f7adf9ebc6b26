-- Push the deadline of an open reservation and of its leases (a stream that goes on). Never pulls it nearer.
--
-- KEYS  1 reservation record   2 open reservations   3.. the request's lease sets
-- ARGV  1 event id   2 new deadline (ms)   3 record with the new deadline (opaque text)
-- Gives {extended | absent, now}

if #KEYS < 2 or #ARGV ~= 3 then
  return redis.error_reply('ERR extend: ' .. #KEYS .. ' keys do not go with ' .. #ARGV .. ' arguments')
end

local now = clock_ms()
local deadline = call('ZSCORE', KEYS[2], ARGV[1])
if not deadline or call('EXISTS', KEYS[1]) == 0 then return {'absent', now} end
if tonumber(ARGV[2]) > tonumber(deadline) then
  call('SET', KEYS[1], ARGV[3])
  for i = 2, #KEYS do call('ZADD', KEYS[i], 'XX', ARGV[2], ARGV[1]) end
end
return {'extended', now}
