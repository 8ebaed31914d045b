import { parentPort, workerData } from 'node:worker_threads'
import { SECOND_MS } from '../kernel/process/clock.ts'
import { RegistryInForce } from '../store/registry-in-force.ts'
import { Store } from '../store/store.ts'
import { ByteRing, RecordKind } from './byte-ring.ts'
import type { ConnectionReader, Peer } from './connection.ts'
import { Lane } from './lane.ts'
import { TokenRate } from './rates.ts'
import type { OpenedConnection } from './thread-lane.ts'
import type { FromLane, FromLaneToSockets, FromSocketsToLane, LaneWorkerData, ToLane } from './thread-protocol.ts'

/** Bytes read before other work gets its turn: stored batches, revoked tokens. */
const BYTES_PER_TURN = 512 * 1024

/** A lane in a separate thread, which reads its bytes from the ring of the socket thread. */
class LaneWorker {
  readonly #data: LaneWorkerData
  readonly #store: Store
  readonly #ring: ByteRing
  readonly #lane: Lane
  readonly #readers = new Map<number, ConnectionReader>()
  readonly #sweepTimer: NodeJS.Timeout
  #isReading = false
  readonly #take = (kind: RecordKind, connection: number, chunk: Uint8Array): void =>
    this.#onRecord(kind, connection, chunk)

  constructor(data: LaneWorkerData) {
    this.#data = data
    this.#store = new Store(data.dataDirectory)
    this.#ring = new ByteRing(data.ring)
    this.#lane = new Lane({
      store: this.#store,
      known: new RegistryInForce(this.#store, data.registry),
      tokenRate: data.tokenRateMax === 0 ? undefined : new TokenRate(data.tokenRateTable, data.tokenRateMax),
      idleMs: data.idleMs,
      waitingBytesMax: data.waitingBytesMax,
      notify,
    })
    data.sockets.on('message', (_bytes: FromSocketsToLane) => this.#wake())
    this.#sweepTimer = setInterval(() => this.#lane.sweep(Date.now()), SECOND_MS)
    this.#wake()
  }

  onMessage(message: ToLane): void {
    switch (message.kind) {
      case 'settled':
        return this.#lane.settled(message.id, message.unstored)
      case 'status':
        return notify({ kind: 'status', id: message.id, status: this.#lane.status() }, [])
      case 'drain':
        void this.#drain(message.deadlineMs)
        return
      default:
        message satisfies never
    }
  }

  #wake(): void {
    if (this.#isReading) return
    this.#isReading = true
    this.#read()
  }

  #read(): void {
    const more = this.#ring.read(BYTES_PER_TURN, this.#take)
    if (this.#ring.takeSpaceRequest()) this.#notifySockets({ kind: 'space' })
    if (more || !this.#ring.sleep()) {
      setImmediate(() => this.#read())
      return
    }
    this.#isReading = false
  }

  #onRecord(kind: RecordKind, connection: number, chunk: Uint8Array): void {
    switch (kind) {
      case RecordKind.open: {
        const { listener, address, port } = JSON.parse(Buffer.from(chunk).toString()) as OpenedConnection
        this.#readers.set(connection, this.#lane.open(listener, address, port, this.#peerOf(connection)))
        return
      }
      case RecordKind.data:
        return this.#readers.get(connection)?.data(chunk)
      case RecordKind.end:
        return this.#readers.get(connection)?.end()
      case RecordKind.close:
        this.#readers.get(connection)?.close()
        this.#readers.delete(connection)
        return
      default:
        kind satisfies never
    }
  }

  #peerOf(connection: number): Peer {
    return {
      pause: () => this.#notifySockets({ kind: 'pause', connection }),
      resume: () => this.#notifySockets({ kind: 'resume', connection }),
      close: (why) => this.#notifySockets({ kind: 'close', connection, why }),
      noteToken: (tokenId) => this.#notifySockets({ kind: 'token', connection, tokenId }),
    }
  }

  async #drain(deadlineMs: number): Promise<void> {
    // The sockets are closed. Only the bytes in the ring remain.
    while (this.#isReading || this.#ring.read(BYTES_PER_TURN, this.#take))
      await new Promise((resolve) => setImmediate(resolve))
    const unsettled = await this.#lane.drain(deadlineMs)
    clearInterval(this.#sweepTimer)
    await this.#store.close()
    notify({ kind: 'drained', ...unsettled }, [])
    this.#data.sockets.close()
    parentPort?.close()
  }

  #notifySockets(message: FromLaneToSockets): void {
    this.#data.sockets.postMessage(message)
  }
}

function notify(message: FromLane, transfer: readonly ArrayBuffer[]): void {
  parentPort?.postMessage(message, transfer)
}

const worker = new LaneWorker(workerData as LaneWorkerData)
parentPort?.on('message', (message: ToLane) => worker.onMessage(message))
