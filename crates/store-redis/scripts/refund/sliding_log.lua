local function refund(c, a)
  settle(c, a)
  local left = c.used - a[1]
  if left <= 0 then
    call('DEL', c.key)
    return
  end
  local newest, first = stamp(c, left - 1), HEADER + 4 * c.head
  local kept = call('GETRANGE', c.key, first, first + 4 * left - 1)
  local header = pack_struct(FORMAT, newest, c.over or -1, 0, 0)
  local ends = math.ceil((newest * a[6] + a[5]) / 1000) + shift
  call('SET', c.key, header .. kept, 'PXAT', format('%d', ends))
end
