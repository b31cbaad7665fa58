-- What dropped in since the charge was made would have been lost without it.
local function refund_charge(c, a, made)
  local index = settle(c, a)
  local edges = math.max(index - floor(made / a[5]), 0)
  a[1] = a[1] - edges * a[6]
  -- Debt that may have been forgotten.
  if edges > 0 and a[4] == -2 then a[1] = a[1] - (a[7] - a[2]) end
  if a[1] > 0 then refund(c, a) end
end
