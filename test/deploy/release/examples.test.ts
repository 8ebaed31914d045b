import { basename } from 'node:path'
import t from 'tap'
import { pageText } from '../../../deploy/docs/main.ts'
import { pagePaths } from '../../../deploy/docs/references.ts'
import { PROGRAMS } from '../../../deploy/release/programs.ts'
import { installedPage } from '../../../deploy/release/tree.ts'

t.test('each package has the files to which its pages link', async (t) => {
  const pages = pagePaths().filter((page) => page.startsWith('docs/'))
  const links = pages.flatMap((page) => [...installedPage(pageText(page)).matchAll(/\]\([./]+examples\/([^)]+)\)/g)])
  const linked = new Set(links.map(([, name]) => name ?? ''))
  t.ok(linked.has('nats.conf') && linked.has('haproxy-cluster.cfg'))
  for (const { name, examples } of PROGRAMS) {
    const names = examples.map((file) => basename(file))
    t.equal(new Set(names).size, names.length, `${name}: each has its own name`)
    t.same(
      [...linked].filter((each) => !names.includes(each)),
      [],
      name,
    )
  }
  t.same(
    pages.filter((page) => /\]\([./]+deploy\//.test(installedPage(pageText(page)))),
    [],
  )
})
