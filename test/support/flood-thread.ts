import { connect, type Socket } from 'node:net'
import { parentPort, workerData } from 'node:worker_threads'
import { deferred } from '../../engine/kernel/process/deferred.ts'

/** Settings of a thread of attackers, which runs until it is stopped. */
export interface FloodData {
  readonly port: number
  readonly attackers: number
  /** Pipelined requests per connection. */
  readonly requests: number
  /** Whether the attackers read the answers. */
  readonly reads: boolean
}

export interface FloodReport {
  readonly connections: number
  /** Number of attackers whose first connection the service has closed. */
  readonly disconnected: number
  readonly bytesRead: number
}

const RECONNECT_MS = 5
const WRITE_MS = 200
/** Generous, because a busy machine accepts connections late. */
const DISCONNECTED_MS = 120_000
const REQUEST = 'GET /api/v1/scores HTTP/1.1\r\nHost: x\r\nX-API-Key: wrong\r\n\r\n'

const { port, attackers, requests, reads } = workerData as FloodData
const bytes = Buffer.from(REQUEST.repeat(requests))
const open = new Set<Socket>()
const allDisconnected = deferred()
let connections = 0
let disconnected = 0
let bytesRead = 0
let ends = false

/** Each attacker has its own address. */
function attack(attacker: number, isFirst: boolean): void {
  if (ends) return
  const localAddress = `127.0.${2 + Math.floor(attacker / 250)}.${1 + (attacker % 250)}`
  const socket = connect({ port, host: '127.0.0.1', localAddress })
  connections++
  open.add(socket)
  socket.on('error', () => {})
  if (reads) {
    socket.on('data', (chunk) => {
      bytesRead += chunk.length
    })
  }
  socket.on('connect', () => socket.write(bytes))
  // A socket that is not read detects its close only when it writes.
  const timer = setInterval(() => socket.write(REQUEST), WRITE_MS)
  socket.on('close', () => {
    clearInterval(timer)
    open.delete(socket)
    if (isFirst && ++disconnected === attackers) allDisconnected.resolve()
    setTimeout(() => attack(attacker, false), RECONNECT_MS)
  })
}

/** Ends the attack once the service has closed the first connection of each attacker. */
parentPort?.on('message', async () => {
  const timer = setTimeout(() => allDisconnected.resolve(), DISCONNECTED_MS)
  await allDisconnected.promise
  clearTimeout(timer)
  ends = true
  for (const socket of open) socket.destroy()
  const report: FloodReport = { connections, disconnected, bytesRead }
  parentPort?.postMessage(report)
  parentPort?.close()
})
for (let attacker = 0; attacker < attackers; attacker++) attack(attacker, true)
