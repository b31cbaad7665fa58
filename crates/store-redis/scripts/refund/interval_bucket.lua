local function refund(c, a)
  local index, missing = settle(c, a)
  if missing <= a[1] then
    call('DEL', c.key)
  else
    refill(c, a, index, missing - a[1], c.over)
  end
end
