-- While no more time has passed than the whole loan takes to refill, the bucket cannot have been full since,
-- and all that is left of the loan is still missing from it.
local function give_back(c, a, made, ends, whole)
  if now - made <= whole then refund(c, a) end
end
