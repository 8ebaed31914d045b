import { MessageChannel } from 'node:worker_threads'
import t from 'tap'
import { ByteRing, makeByteRing, RecordKind, RING_CHUNK_BYTES_MAX } from '../../../engine/ingest/byte-ring.ts'
import { ThreadLane } from '../../../engine/ingest/thread-lane.ts'
import { until } from '../../support/wait.ts'

t.test('data waiting for space in the ring is bounded: no socket is read until all of it is in the ring', async (t) => {
  const WAITING_MAX = 1024 * 1024
  const memory = makeByteRing(4 * RING_CHUNK_BYTES_MAX)
  const { port1, port2 } = new MessageChannel()
  t.teardown(() => port1.close())
  const lane = new ThreadLane(memory, port2, WAITING_MAX)
  const open = () => {
    const state = { reads: true }
    const peer = {
      pause: () => {
        state.reads = false
      },
      resume: () => {
        state.reads = true
      },
      close: () => {},
      noteToken: () => {},
    }
    return { state, reader: lane.open('tcp', '192.0.2.1', 514, peer) }
  }
  const all = Array.from({ length: 100 }, open)
  const chunk = new Uint8Array(RING_CHUNK_BYTES_MAX)
  let sent = 0
  for (const { state, reader } of all) {
    if (!state.reads) continue
    reader.data(chunk)
    sent += chunk.length
  }
  t.ok(sent <= WAITING_MAX + 5 * RING_CHUNK_BYTES_MAX, `${sent} bytes were read`)
  t.ok(all.every(({ state }, index) => !state.reads || index < 4))
  const late = open()
  t.equal(late.state.reads, false, 'a new socket is not read either')
  const ring = new ByteRing(memory)
  let read = 0
  await until('all is read', () => {
    ring.read(1 << 30, (kind, _connection, bytes) => {
      if (kind === RecordKind.data) read += bytes.length
    })
    if (ring.takeSpaceRequest()) port1.postMessage({ kind: 'space' })
    return (read === sent && lane.idle) || undefined
  })
  t.ok(
    [...all, late].every(({ state }) => state.reads),
    'later, all are read',
  )
})
