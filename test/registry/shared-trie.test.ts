import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { isMainThread, Worker, workerData } from 'node:worker_threads'
import t from 'tap'
import { loadCatalog } from '../../registry/catalog.ts'
import { compileTrie } from '../../registry/compile-trie.ts'
import { DomainTrie } from '../../registry/domain-trie.ts'
import { wireName } from '../support/random-names.ts'

const name = wireName(['WS', 'ChatGPT', 'com'])
const match = (bytes: SharedArrayBuffer) =>
  new DomainTrie(bytes).matchWire(new DataView(name.buffer, name.byteOffset, name.byteLength), 0, name.byteLength)

if (isMainThread) {
  t.test('another thread reads the same bytes and gets the same result', async (t) => {
    const { rules } = loadCatalog()
    const bytes = compileTrie(rules)
    const answer = new Int32Array(new SharedArrayBuffer(4)).fill(-2)
    await once(new Worker(fileURLToPath(import.meta.url), { workerData: { bytes, answer } }), 'exit')
    t.equal(rules[match(bytes)]?.domain, 'ws.chatgpt.com')
    t.equal(answer[0], match(bytes))
  })
} else {
  const { bytes, answer } = workerData as { bytes: SharedArrayBuffer; answer: Int32Array }
  answer[0] = match(bytes)
}
