-- Admit one request under all its rules, or change nothing at all.
--
-- KEYS  1 epoch   2 revoked marker of the caller's key   3 reservation record   4 open reservations
--       5.. one a rule, in the order in which they are checked
-- ARGV  1 event id   2 issued at (store's ms)   3 deadline (ms)   4 record (opaque text)
--       5 '1': counters may be used while cold
--       6.. four a rule: kind, limit, amount, extra
--           b  token bucket per minute: extra = tokens that must stay free (headroom of higher priorities)
--           w  rolling window of 60 s:  extra = the same
--           l  leases (requests in flight), scored by the deadline: amount 1, extra unused
--           c  counter of a period (hash: s spent, r reserved): extra = end of the period (ms), 0: never ends
-- Gives {status, now, epoch, rule, wait, then two numbers a rule: used, reserved}
--       ok       every hold taken; numbers are those after it
--       refused  by `rule` (from 1); numbers as they are; wait = ms until it could pass, -1: never, it alone is larger
--                than the limit, -2: not in this period, which does not end
--       revoked | stale | period | cold: nothing done, no numbers. stale: issued more than 2 s ago (a store that was
--                stopped executes old calls when it goes on) or the event id is taken; period: a period has ended,
--                compute the keys again; cold: the epoch is missing, counters must be rebuilt first
-- Used of a bucket is in units of 1/60,000 token.

local FIXED_KEYS, FIXED_ARGS, PER_RULE, STALE_MS, KEPT_MS = 4, 5, 4, 2000, 3456000000
local rules = #KEYS - FIXED_KEYS
if rules < 0 or #ARGV ~= FIXED_ARGS + rules * PER_RULE then
  return redis.error_reply('ERR admit: ' .. #KEYS .. ' keys do not go with ' .. #ARGV .. ' arguments')
end

local now = clock_ms()
local texts, place, counters = {KEYS[1], KEYS[2], KEYS[3]}, {}, false
local ended = false
for i = 1, rules do
  local at = FIXED_ARGS + (i - 1) * PER_RULE
  local kind = ARGV[at + 1]
  if kind == 'b' then
    texts[#texts + 1] = KEYS[FIXED_KEYS + i]
    place[i] = #texts
  elseif kind == 'c' then
    local period_end = tonumber(ARGV[at + 4])
    counters = true
    ended = ended or (period_end > 0 and now >= period_end)
  end
end

local read = redis.call('MGET', unpack(texts))
local epoch = read[1] or ''
if read[2] then return {'revoked', now, epoch} end
if read[3] or now - ARGV[2] > STALE_MS then return {'stale', now, epoch} end
if ended then return {'period', now, epoch} end
if counters and epoch == '' and ARGV[5] ~= '1' then return {'cold', now, epoch} end

-- How long until a window has `amount` free: the oldest leave first.
local function window_wait(key, missing)
  local oldest = redis.call('ZRANGEBYSCORE', key, '(' .. whole(now - WINDOW_MS), '+inf', 'WITHSCORES')
  for i = 1, #oldest, 2 do
    missing = missing - string.match(oldest[i], '^%d+')
    if missing <= 0 then return oldest[i + 1] + WINDOW_MS - now end
  end
  return WINDOW_MS
end

-- Each check gives: passes, ms to wait, used and reserved as they are, the same after admission.
local check = {}

function check.b(i, key, limit, amount, headroom)
  local used = bucket_used(read[place[i]], limit, now)
  local need, free = amount * UNITS, (limit - headroom) * UNITS - used
  if need <= free then return true, 0, used, 0, used + need, 0 end
  if amount > limit - headroom then return false, -1, used, 0 end
  return false, math.ceil((need - free) / limit), used, 0
end

function check.w(_, key, limit, amount, headroom)
  local used = window_used(key, now)
  local free = limit - headroom - used
  if amount <= free then return true, 0, used, 0, used + amount, 0 end
  if amount > limit - headroom then return false, -1, used, 0 end
  return false, window_wait(key, amount - free), used, 0
end

function check.l(_, key, limit)
  local live = '(' .. whole(now)
  local count = redis.call('ZCOUNT', key, live, '+inf')
  if count < limit then return true, 0, count, 0, count + 1, 0 end
  local first = redis.call('ZRANGEBYSCORE', key, live, '+inf', 'WITHSCORES', 'LIMIT', '0', '1')
  return false, first[2] and first[2] - now or -2, count, 0
end

function check.c(_, key, limit, amount, period_end)
  local kept = redis.call('HMGET', key, 's', 'r')
  local spent, reserved = tonumber(kept[1] or 0), tonumber(kept[2] or 0)
  if amount <= limit - spent - reserved then return true, 0, spent, reserved, spent, reserved + amount end
  return false, amount > limit and -1 or period_end > 0 and period_end - now or -2, spent, reserved
end

local reply = {'ok', now, epoch, 0, 0}
local after = {}
for i = 1, rules do
  local at = FIXED_ARGS + (i - 1) * PER_RULE
  local passes, wait, used, reserved, then_used, then_reserved = check[ARGV[at + 1]](
    i, KEYS[FIXED_KEYS + i], tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4]))
  if not passes and reply[1] == 'ok' then
    reply[1], reply[4], reply[5] = 'refused', i, wait
  end
  reply[4 + 2 * i], reply[5 + 2 * i] = used, reserved
  after[2 * i - 1], after[2 * i] = then_used, then_reserved
end
if reply[1] == 'refused' then return reply end

local take = {}

function take.b(key, limit, amount, used)
  if amount > 0 then write_bucket(key, used, limit, now) end
end

function take.w(key, _, amount, used)
  redis.call('ZREMRANGEBYSCORE', key, '0', whole(now - WINDOW_MS))
  if amount > 0 then redis.call('ZADD', key, whole(now), whole(amount) .. ':' .. ARGV[1]) end
  write_window_total(key, used)
end

function take.l(key)
  redis.call('ZADD', key, ARGV[3], ARGV[1])
end

function take.c(key, _, amount, spent, reserved, period_end)
  if amount <= 0 then return end
  redis.call('HSET', key, 'r', whole(reserved))
  if spent == 0 and reserved == amount and period_end > 0 then
    redis.call('PEXPIREAT', key, whole(period_end + KEPT_MS))
  end
end

for i = 1, rules do
  local at = FIXED_ARGS + (i - 1) * PER_RULE
  take[ARGV[at + 1]](KEYS[FIXED_KEYS + i], tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3]),
    after[2 * i - 1], after[2 * i], tonumber(ARGV[at + 4]))
  reply[4 + 2 * i], reply[5 + 2 * i] = after[2 * i - 1], after[2 * i]
end
redis.call('SET', KEYS[3], ARGV[4])
redis.call('ZADD', KEYS[4], ARGV[3], ARGV[1])
return reply
