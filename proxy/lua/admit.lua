-- Admit one request under all its rules, or change nothing at all.
--
-- KEYS  1 epoch   2 revoked marker of the caller's key   3 reservation record   4 open reservations
--       5.. one a rule, in the order in which they are checked
-- ARGV  1 event id   2 issued at (store's ms)   3 deadline (ms)   4 record (opaque text)
--       5 '1': counters may be used while cold   6, 7 the time (ms) from and until which the counters' keys are right
--       8.. four a rule: kind, limit, amount, extra
--           b  token bucket per minute: extra = tokens that must stay free (headroom of higher priorities)
--           w  rolling window of 60 s:  extra = the same
--           l  leases (requests in flight), scored by the deadline: amount 1, extra unused
--           c  counter of a period (hash: s spent, r reserved): extra = end of the period (ms), 0: never ends
-- Gives {status, now, epoch, rule, wait, then two numbers a rule: used, reserved}
--       ok       every hold taken; numbers are those after it
--       refused  by `rule` (from 1); numbers as they are; wait = ms until it could pass, -1: never, it alone is larger
--                than the limit, -2: not in this period, which does not end
--       revoked | stale | taken | period | cold: nothing done, no numbers. stale: issued more than 2 s ago (a store
--                that was stopped executes old calls when it goes on); taken: the event id was used before, or its
--                admission was cancelled; period: compute the counters' keys again; cold: the epoch is
--                missing, counters must be rebuilt first
-- Used of a bucket is in units of 1/60,000 token.

local FIXED_KEYS, FIXED_ARGS, PER_RULE, STALE_MS, KEPT_MS = 4, 7, 4, 2000, 3456000000
local rules = #KEYS - FIXED_KEYS
if rules < 0 or #ARGV ~= FIXED_ARGS + rules * PER_RULE then
  return redis.error_reply('ERR admit: ' .. #KEYS .. ' keys do not go with ' .. #ARGV .. ' arguments')
end

local now = clock_ms()
local texts, buckets, counters = {KEYS[1], KEYS[2], KEYS[3]}, 3, false
for i = 1, rules do
  local kind = ARGV[FIXED_ARGS + (i - 1) * PER_RULE + 1]
  if kind == 'b' then
    buckets = buckets + 1
    texts[buckets] = KEYS[FIXED_KEYS + i]
  end
  counters = counters or kind == 'c'
end

local read = call('MGET', unpack(texts))
local epoch = read[1] or ''
if read[2] then return {'revoked', now, epoch} end
if now - ARGV[2] > STALE_MS then return {'stale', now, epoch} end
if read[3] then return {'taken', now, epoch} end
if now < tonumber(ARGV[6]) or now >= tonumber(ARGV[7]) then return {'period', now, epoch} end
if counters and epoch == '' and ARGV[5] ~= '1' then return {'cold', now, epoch} end

-- How long until `missing` of a window is free: the oldest leave first.
local function window_wait(key, missing)
  local oldest = call('ZRANGEBYSCORE', key, '(' .. format('%.0f', now - WINDOW_MS), '+inf', 'WITHSCORES')
  for i = 1, #oldest, 2 do
    missing = missing - string.match(oldest[i], '^%d+')
    if missing <= 0 then return oldest[i + 1] + WINDOW_MS - now end
  end
  return WINDOW_MS
end

-- First look at all rules: `used` and `reserved` as they are, and the first that does not let the request pass.
local used, reserved, amounts = {}, {}, {}
local refused, wait = 0, 0
local live = '(' .. format('%.0f', now)
buckets = 3
for i = 1, rules do
  local at = FIXED_ARGS + (i - 1) * PER_RULE
  local key, kind = KEYS[FIXED_KEYS + i], ARGV[at + 1]
  local limit, amount, extra = tonumber(ARGV[at + 2]), tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4])
  local free, until_free, held = 0, 0, 0
  local taken
  if kind == 'b' then
    buckets = buckets + 1
    taken = bucket_used(read[buckets], limit, now)
    free = (limit - extra) * UNITS - taken
    if amount * UNITS > free then
      until_free = amount > limit - extra and -1 or math.ceil((amount * UNITS - free) / limit)
    end
  elseif kind == 'c' then
    local kept = call('HMGET', key, 's', 'r')
    taken, held = tonumber(kept[1] or 0), tonumber(kept[2] or 0)
    free = limit - taken - held
    if amount > free then until_free = amount > limit and -1 or extra > 0 and extra - now or -2 end
  elseif kind == 'l' then
    taken = call('ZCOUNT', key, live, '+inf')
    if taken >= limit then
      local first = call('ZRANGEBYSCORE', key, live, '+inf', 'WITHSCORES', 'LIMIT', 0, 1)
      until_free = first[2] and first[2] - now or -2
    end
  else
    taken = window_used(key, now)
    free = limit - extra - taken
    if amount > free then until_free = amount > limit - extra and -1 or window_wait(key, amount - free) end
  end
  if until_free ~= 0 and refused == 0 then refused, wait = i, until_free end
  used[i], reserved[i], amounts[i] = taken, held, amount
end

local reply = {'ok', now, epoch, refused, wait}
if refused == 0 then
  for i = 1, rules do
    local key, kind, amount = KEYS[FIXED_KEYS + i], ARGV[FIXED_ARGS + (i - 1) * PER_RULE + 1], amounts[i]
    if kind == 'l' then
      call('ZADD', key, ARGV[3], ARGV[1])
      used[i] = used[i] + 1
    elseif amount > 0 and kind == 'b' then
      used[i] = used[i] + amount * UNITS
      write_bucket(key, used[i], now)
    elseif amount > 0 and kind == 'c' then
      local fresh = used[i] == 0 and reserved[i] == 0
      reserved[i] = reserved[i] + amount
      call('HSET', key, 'r', reserved[i])
      local period_end = fresh and tonumber(ARGV[FIXED_ARGS + i * PER_RULE]) or 0
      if period_end > 0 then call('PEXPIREAT', key, period_end + KEPT_MS) end
    elseif amount > 0 then
      call('ZREMRANGEBYSCORE', key, 0, now - WINDOW_MS)
      call('ZADD', key, now, format('%.0f:%s', amount, ARGV[1]))
      used[i] = used[i] + amount
      write_window_total(key, used[i])
    end
  end
  call('SET', KEYS[3], ARGV[4])
  call('ZADD', KEYS[4], ARGV[3], ARGV[1])
else
  reply[1] = 'refused'
end
for i = 1, rules do
  reply[4 + 2 * i], reply[5 + 2 * i] = used[i], reserved[i]
end
return reply
