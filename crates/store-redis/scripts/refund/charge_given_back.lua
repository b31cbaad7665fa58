-- A charge is refunded as permits of a loan are that ends when it is made.
local function refund_charge(c, a, made) give_back(c, a, made, made) end
