-- Has `fit` charge more than the fewest permits that are asked for: up to the most wanted, and of what is left
-- of the ordinary limit one in so many, if that is more than the reserve.
local most_wanted, one_in, reserve, life = unpack_struct('<dddd', ARGV[2])
local fit_plainly = fit
later = life

local function fit(c, a, used)
  local left = a[2] - used - a[1]
  if left > reserve then a[1] = a[1] + math.max(math.min(most_wanted - a[1], floor(left / one_in)), 0) end
  return fit_plainly(c, a, used)
end
