import * as uWS from 'uWebSockets.js'

/** What the socket gives away: a route of uWebSockets.js with a constant body, no check, no field but its type. */
const [, bytes = '0', key = '', certificate = ''] = process.argv.slice(2)
const body = Buffer.alloc(Number(bytes), 0x7b)
const app = key === '' ? uWS.App() : uWS.SSLApp({ key_file_name: key, cert_file_name: certificate })
app.get('/api/v1/discovery', (response) => {
  response.writeHeader('content-type', 'application/json').end(body)
})
app.listen('127.0.0.1', 0, (socket) => {
  if (socket !== false) process.send?.(uWS.us_socket_local_port(socket))
})
