import { spawn } from 'node:child_process'
import { createSocket } from 'node:dgram'

/**
 * A name server on loopback that never answers. Runs the given program, interrupts it at the first
 * query, and exits with its status. Prints the time from the interrupt to the exit.
 */
const [program = '', ...parameters] = process.argv.slice(2)
const server = createSocket('udp4')
server.bind(53, '127.0.0.1', () => {
  const child = spawn(process.execPath, [program, ...parameters], { stdio: 'inherit' })
  let interruptedMs = 0
  server.once('message', () => {
    interruptedMs = performance.now()
    child.kill('SIGINT')
  })
  child.once('exit', (status) => {
    process.stderr.write(`ended after ${Math.round(performance.now() - interruptedMs)} ms\n`)
    process.exit(status ?? 1)
  })
})
