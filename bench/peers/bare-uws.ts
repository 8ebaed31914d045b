import * as uWS from 'uWebSockets.js'

/**
 * The maximum speed of the socket: a uWebSockets.js route without checks and with no field except
 * the type. Its body is constant, or one of `count` bodies in turn, which come from memory instead
 * of the processor's cache.
 */
const [, bytes = '0', key = '', certificate = '', count = '1'] = process.argv.slice(2)
const bodies = Array.from({ length: Number(count) }, () => new Uint8Array(Number(bytes)).fill(0x7b))
let at = 0
const app = key === '' ? uWS.App() : uWS.SSLApp({ key_file_name: key, cert_file_name: certificate })
app.get('/api/v1/discovery', (response) => {
  at = at + 1 === bodies.length ? 0 : at + 1
  response.writeHeader('content-type', 'application/json').end(bodies[at] ?? '')
})
app.listen('127.0.0.1', 0, (socket) => {
  if (socket !== false) process.send?.(uWS.us_socket_local_port(socket))
})
