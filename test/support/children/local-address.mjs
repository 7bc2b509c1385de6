/**
 * Loaded before a program (`--import`): its TCP connections come from the address in LOCAL_ADDRESS, as if it ran on a machine of its own. A
 * proxy between several of them can then tell which one connects.
 */
import { Socket } from 'node:net'

const localAddress = process.env.LOCAL_ADDRESS
const connect = Reflect.get(Socket.prototype, 'connect')

/** A copy: agents of `node:http` compare theirs later. */
const withAddress = (options) => ('port' in options ? { localAddress, ...options } : options)

Socket.prototype.connect = function (...args) {
  const [first] = args
  // Node passes the arguments on as one list.
  if (Array.isArray(first)) first[0] = withAddress(first[0])
  else if (typeof first === 'object' && first !== null) args[0] = withAddress(first)
  return Reflect.apply(connect, this, args)
}
