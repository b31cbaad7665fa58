-- What dropped in since the charge was made would have been lost without it.
local function refund_charge(c, a, made)
  local index = settle(c, a)
  a[1] = a[1] - math.max(index - floor(made / a[5]), 0) * a[6]
  if a[1] > 0 then refund(c, a) end
end
