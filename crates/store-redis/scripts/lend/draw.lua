-- Draws permits of one counter.
--
-- KEYS: the counter and, of a bucket, its note. ARGV: the numbers `a` of its algorithm, of which the cost is the fewest permits of use;
-- the most wanted, one in how many of what is left, the reserve, and how long they live in microseconds, as
-- doubles; for a bucket, what `lend/bucket.lua` says.
-- Reply: as of `one.lua`; how many permits were drawn beyond the fewest or, of a bucket, in all; and what its
-- note says.
local a = {unpack_struct(NUMBERS, ARGV[1])}
local least = a[1]
local c = {key = KEYS[1]}
open(c, a)
local fits = weigh(c, a)
local found = c.found and (tell and tell(c, a, true) or c.found) or ''
write(c, a, true)
return {
  (fits and '1' or '0') .. time[1] .. '.' .. time[2] .. ' ' .. found,
  format('%d', c.permits or a[1] - least),
  format('%d', c.noted or 0),
}
