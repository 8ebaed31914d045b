import t from 'tap'
import { allocateBatch, FrameBatch } from '../../../collector/batch/frame-batch.ts'
import { DNS_PORTS, PROXY_PORTS, TLS_PORTS } from '../../../collector/decode/ports.ts'
import { Lane } from '../../../collector/pipeline/lane.ts'
import { RESOLVERS } from '../../../collector/visibility.ts'
import { compileTrie } from '../../../registry/compile-trie.ts'
import { TRIE } from '../decode-frames.ts'

t.test('a lane that is stopped while a batch waits starts no other thread', async (t) => {
  const memory = allocateBatch(1, { frameBytes: 1_000_000, rowBytes: 1_000_000, listFrames: 8 })
  const batch = new FrameBatch(memory, 0)
  batch.tryTake()
  // The batches before it never arrive, as after a failed observation.
  batch.beginFilling(7)
  const resolvers = compileTrie(RESOLVERS)
  const options = {
    trie: TRIE,
    resolvers,
    everyName: true,
    dnsPorts: DNS_PORTS,
    tlsPorts: TLS_PORTS,
    proxyPorts: PROXY_PORTS,
    loadBalancers: [],
  }
  const lane = new Lane({ ...options, lane: 0, batches: [memory] }, (error) => t.fail(error.message))
  const refused = t.rejects(lane.decode(0))
  await lane.stop()
  await refused
  await t.rejects(lane.decode(0), { message: 'the lane was stopped' })
})
