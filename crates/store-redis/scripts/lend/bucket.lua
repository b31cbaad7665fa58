-- Has a bucket charge more than the fewest permits that are asked for: the first of the numbers of permits in
-- ARGV[3], most first, for which enough is left. For each: the span that must be left, what it takes (pairs),
-- and the number itself. A loan is told what the note says.
local weigh_plainly = weigh

local function weigh(c, a)
  local us, rest = 0, 0
  if c.us and c.us >= now then us, rest = c.us - now, c.rest end
  local at = 1
  c.permits = 0
  while at < #ARGV[3] do
    local need, need_rest, cost, cost_rest, n
    need, need_rest, cost, cost_rest, n, at = unpack_struct('<ddddd', ARGV[3], at)
    need, need_rest = us + need, rest + need_rest
    if need_rest >= MICRO then need, need_rest = need + 1, need_rest - MICRO end
    if need < a[5] or need == a[5] and need_rest <= a[6] then
      a[1], a[2], c.permits = cost, cost_rest, n
      break
    end
  end
  local fits = weigh_plainly(c, a)
  if fits then c.noted = noted(call('GETEX', KEYS[2], 'PXAT', note_ends(a))) end
  return fits
end
