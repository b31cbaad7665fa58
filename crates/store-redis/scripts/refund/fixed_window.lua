local function refund(c, a)
  local index, count = settle(c, a)
  if count <= a[1] then
    call('DEL', c.key)
  else
    put(c, format('%d:%d', index, count - a[1]), c.over, (index + 1) * a[5])
  end
end
