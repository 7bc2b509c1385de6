// Loaded before a demo server that would listen on every interface of the machine: it listens on 127.0.0.1 instead.
import { Server } from 'node:net'

const listen = Object.getOwnPropertyDescriptor(Server.prototype, 'listen').value
Server.prototype.listen = function (port, ...rest) {
  return Number.isInteger(Number(port)) ? listen.call(this, Number(port), '127.0.0.1', ...rest) : listen.call(this, port, ...rest)
}
