local function refund(c, a)
  settle(c, a)
  local left = math.max(c.used - a[1], 0)
  if left == 0 and not has_period(c, a[4]) then
    call('DEL', c.key)
    return
  end
  local newest, first = left > 0 and stamp(c, left - 1) or 0, HEADER + 4 * c.head
  local kept = left > 0 and call('GETRANGE', c.key, first, first + 4 * left - 1) or ''
  call('SET', c.key, header(c, newest, 0, 0) .. kept, 'PXAT', ends(c, a, newest))
end
