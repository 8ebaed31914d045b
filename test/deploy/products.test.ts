import t from 'tap'
import { PRODUCTS } from '../../deploy/log-samples.ts'
import { readMessages } from '../support/read-messages.ts'

for (const [kind, products] of Object.entries(PRODUCTS)) {
  for (const { name, before = [], line, host, client } of products) {
    t.test(`${kind}: ${name}`, async (t) => {
      const read = readMessages([...before, line]).at(-1)
      t.match(read, { verdict: 'event', host, client })
    })
  }
}
