-- Refunds to one counter what was charged before.
--
-- KEYS: the counter and, of a bucket that is lent, its note. ARGV: the numbers `a` of its algorithm, of which the cost is
-- what is refunded; its period of soft admissions then, as microseconds (-1: none, -2: as it is) and step; and of one
-- charge, when it was made in microseconds and, of a queue, when it was to be empty again, as whole microseconds and
-- nanoseconds (-1: no queue). Without a charge, ARGV[3] is empty.
local a = {unpack_struct(NUMBERS, ARGV[1])}
local c = {key = KEYS[1]}
open(c, a)
local since, step = unpack_struct('<dd', ARGV[2])
if since >= 0 then c.since, c.step = since, step elseif since == -1 then c.since, c.step = nil, nil end
if c.found then
  if #ARGV[3] > 0 then refund_charge(c, a, unpack_struct('<ddd', ARGV[3])) else refund(c, a) end
end
return time[1] .. '.' .. time[2]
