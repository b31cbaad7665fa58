-- Refunds to one counter what was charged before.
--
-- KEYS: the counter and, of a bucket that is lent, its note. ARGV: the numbers `a` of its algorithm, of which the cost is
-- what is refunded; since when the limit is exceeded then, in microseconds: -1 not at all, -2 as it is; and of one
-- charge, when it was made in microseconds and, of a queue, when it was to be empty again, as whole microseconds and
-- nanoseconds (-1: no queue). Without a charge, ARGV[3] is empty.
local a = {unpack_struct(NUMBERS, ARGV[1])}
local c = {key = KEYS[1]}
open(c, a)
local over = unpack_struct('<d', ARGV[2])
if over > -2 then c.over = over >= 0 and over or nil end
if c.found then
  if #ARGV[3] > 0 then refund_charge(c, a, unpack_struct('<ddd', ARGV[3])) else refund(c, a) end
end
return time[1] .. '.' .. time[2]
