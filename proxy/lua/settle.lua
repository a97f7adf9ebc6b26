-- Settle one request: release what it holds, charge what it used, write its event. Idempotent by event id.
--
-- KEYS  1 reservation record   2 open reservations   3 event stream   4 epoch   5 late mark
--       6.. one a hold
-- ARGV  1 event id   2 mode   3 deadline of the reservation (ms)   4 the event (stream entry)
--       5.. five a hold: kind, limit, held, used, extra
--           b, w  tokens of a bucket or window: the difference is given back or charged
--           l     a lease: released
--           c     a counter: extra = "<period end ms> [<percent> <amount>]..." thresholds of what is spent
-- Modes:
--       held     first try of a request that holds a reservation
--       spooled  the same, kept on disk since the store was away
--       unheld   of a request that was admitted while the store was away
--       again    tried before, with an unknown outcome
--       sweep    of a reservation past its deadline, by the sweeper
-- Without a record: held and spooled charge what was used, because the store lost the reservation (after the deadline
-- they are taken as again: the sweeper may have been first); unheld charges too; again only writes the event once more
-- (the drain drops doubles); sweep does nothing, somebody else settled it.
-- What spooled, unheld and every charge without a record settle leaves a mark in the record's place for a day: no
-- repetition charges twice, and no admission still under way takes a hold afterwards. While the epoch is missing
-- nothing is charged without a record: the rebuild counts the event, and the late mark tells it which event it must
-- have seen.
-- Gives {status, now, then pairs: hold (from 1), percent crossed by this settlement}
--       settled | charged | written | done

local FIXED_KEYS, FIXED_ARGS, PER_HOLD, KEPT_MS, MARK_MS = 5, 4, 5, 3456000000, 86400000
local holds = #KEYS - FIXED_KEYS
if holds < 0 or #ARGV ~= FIXED_ARGS + holds * PER_HOLD then
  return redis.error_reply('ERR settle: ' .. #KEYS .. ' keys do not go with ' .. #ARGV .. ' arguments')
end

local now = clock_ms()
local event, mode = ARGV[1], ARGV[2]
local read = call('MGET', KEYS[1], KEYS[4])
local record, warm = read[1], read[2]
if record == 'settled' then return {'done', now} end
if record == 'cancelled' then record = false end
if mode == 'sweep' and (not record or now < tonumber(ARGV[3])) then return {'done', now} end
if (mode == 'held' or mode == 'spooled') and now >= tonumber(ARGV[3]) then mode = 'again' end

local reply = {'settled', now}
local counted = true
if not record then
  counted = warm and mode ~= 'again'
  reply[1] = counted and 'charged' or 'written'
end
local marks = mode == 'spooled' or mode == 'unheld' or (not record and mode ~= 'again')

-- What is spent of a counter grows by `used`; thresholds not yet told in this period are told when it passes them.
local function settle_counter(i, key, held, used, extra)
  local kept = call('HMGET', key, 's', 'r', 'w')
  local spent, reserved = tonumber(kept[1] or 0) + used, tonumber(kept[2] or 0) - held
  local warned = tonumber(kept[3] or 0)
  local numbers = string.gmatch(extra, '%d+')
  local period_end, crossed = tonumber(numbers()), false
  for percent in numbers do
    percent = tonumber(percent)
    if spent >= tonumber(numbers()) and percent > warned then
      reply[#reply + 1] = i
      reply[#reply + 1] = percent
      warned, crossed = percent, true
    end
  end
  if crossed then call('HSET', key, 'w', warned) end
  call('HSET', key, 's', spent, 'r', reserved > 0 and reserved or 0)
  if not kept[1] and not kept[2] and period_end > 0 then call('PEXPIREAT', key, period_end + KEPT_MS) end
end

local function settle_hold(i, at)
  local key, kind = KEYS[FIXED_KEYS + i], ARGV[at + 1]
  local held, used = record and tonumber(ARGV[at + 3]) or 0, tonumber(ARGV[at + 4])
  if kind == 'c' then
    settle_counter(i, key, held, used, ARGV[at + 5])
  elseif kind == 'l' then
    call('ZREM', key, event)
  elseif kind == 'b' and held ~= used then
    local limit = tonumber(ARGV[at + 2])
    local after = bucket_used(call('GET', key), limit, now) + (used - held) * UNITS
    write_bucket(key, math.min(after, 2 * limit * UNITS, LARGEST), now)
  elseif kind == 'w' and record and held ~= used then
    change_window(key, event, held, used, now)
  end
end

local counters = false
for i = 1, holds do
  local at = FIXED_ARGS + (i - 1) * PER_HOLD
  counters = counters or ARGV[at + 1] == 'c'
  if counted then settle_hold(i, at) end
end

local id = call('XADD', KEYS[3], '*', 'e', ARGV[4])
if not warm and counters then call('SET', KEYS[5], id) end
call('ZREM', KEYS[2], event)
if marks then
  call('SET', KEYS[1], 'settled', 'PX', MARK_MS)
elseif record then
  call('DEL', KEYS[1])
end
return reply
