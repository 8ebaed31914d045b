import { workerData } from 'node:worker_threads'
import { PublishedList } from '../../engine/store/published.ts'
import { Store } from '../../engine/store/store.ts'

/*
 * A worker thread that publishes lists as fast as it can, to test concurrent readers. Each list has
 * its number in its head and in all its elements. The length of the list depends on the number,
 * too.
 */
const { directory, organizationId, stop } = workerData as {
  readonly directory: string
  readonly organizationId: string
  readonly stop: SharedArrayBuffer
}
const flag = new Int32Array(stop)
const store = new Store(directory)
for (let number = 1; Atomics.load(flag, 0) === 0; number++) {
  const elements = Array.from({ length: 101 + (number % 50) }, (_, at) =>
    JSON.stringify({ id: `${number}-${at}`, number, fill: 'x'.repeat(100 + (number % 7) * 50) }),
  )
  store.environment.write(() =>
    store.published.replace(organizationId, PublishedList.discovery, JSON.stringify({ number }), elements),
  )
  Atomics.store(flag, 1, number)
}
await store.close()
