local function refund(c, a)
  local index, count = settle(c, a)
  if count <= a[1] then
    call('DEL', c.key)
  else
    put(c, format('%d:%d', index, count - a[1]), c.over, ends(index, a), ends(c.index, a))
  end
end
