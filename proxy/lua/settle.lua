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

local FIXED_KEYS, FIXED_ARGS, PER_HOLD, KEPT_MS, MARK_MS = 5, 4, 5, 3456000000, '86400000'
local holds = #KEYS - FIXED_KEYS
if holds < 0 or #ARGV ~= FIXED_ARGS + holds * PER_HOLD then
  return redis.error_reply('ERR settle: ' .. #KEYS .. ' keys do not go with ' .. #ARGV .. ' arguments')
end

local now = clock_ms()
local event, mode = ARGV[1], ARGV[2]
local read = redis.call('MGET', KEYS[1], KEYS[4])
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

local settle = {}

function settle.b(_, key, limit, held, used)
  if held == used then return end
  local before = bucket_used(redis.call('GET', key), limit, now)
  local after = math.max(before + (used - held) * UNITS, 0)
  write_bucket(key, math.min(after, 2 * limit * UNITS, LARGEST), limit, now)
end

function settle.w(_, key, _, held, used)
  if record and held ~= used then change_window(key, event, whole(held), whole(used), now) end
end

function settle.l(_, key)
  redis.call('ZREM', key, event)
end

function settle.c(i, key, _, held, used, extra)
  local kept = redis.call('HMGET', key, 's', 'r', 'w')
  local spent, reserved = tonumber(kept[1] or 0) + used, math.max(tonumber(kept[2] or 0) - held, 0)
  local warned = tonumber(kept[3] or 0)
  local numbers = string.gmatch(extra, '%d+')
  local period_end = tonumber(numbers())
  for percent in numbers do
    percent = tonumber(percent)
    if spent >= tonumber(numbers()) and percent > warned then
      reply[#reply + 1], reply[#reply + 2] = i, percent
      warned = percent
    end
  end
  redis.call('HSET', key, 's', whole(spent), 'r', whole(reserved), 'w', whole(warned))
  if not kept[1] and not kept[2] and period_end > 0 then
    redis.call('PEXPIREAT', key, whole(period_end + KEPT_MS))
  end
end

local counters = false
for i = 1, holds do
  local at = FIXED_ARGS + (i - 1) * PER_HOLD
  local kind, held, used = ARGV[at + 1], tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4])
  counters = counters or kind == 'c'
  if not record then held = 0 end
  if counted then settle[kind](i, KEYS[FIXED_KEYS + i], tonumber(ARGV[at + 2]), held, used, ARGV[at + 5]) end
end

local id = redis.call('XADD', KEYS[3], '*', 'e', ARGV[4])
if not warm and counters then redis.call('SET', KEYS[5], id) end
redis.call('ZREM', KEYS[2], event)
if marks then
  redis.call('SET', KEYS[1], 'settled', 'PX', MARK_MS)
elseif record then
  redis.call('DEL', KEYS[1])
end
return reply
