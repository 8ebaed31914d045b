import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { pageText } from '../../../deploy/docs/main.ts'
import { REPOSITORY } from '../../support/programs.ts'

t.test('broker.env of docs/install/cluster.md sets every variable of nats.conf', async (t) => {
  const configuration = readFileSync(join(REPOSITORY, 'deploy/nats/nats.conf'), 'utf8').replace(/^ *#.*$/gm, '')
  const used = [...configuration.matchAll(/\$([A-Z]\w+)(?=\s)/g)].map(([, name]) => name)
  const [, file = ''] = /```ini\n(BROKER_NAME=[\s\S]*?)```/.exec(pageText('docs/install/cluster.md')) ?? []
  const set = [...file.matchAll(/^(\w+)=/gm)].map(([, name]) => name)
  t.same(set.sort(), [...new Set(used)].sort())
  const [, routes = ''] = /^ROUTES='(.*)'$/m.exec(file) ?? []
  t.equal((JSON.parse(routes) as string[]).length, 3)
})
