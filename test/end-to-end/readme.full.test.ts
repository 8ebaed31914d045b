import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { COMMAND_PAGES, withOutputs } from '../../deploy/docs/page-commands.ts'
import { skipNamespaces } from '../support/namespace.ts'
import { REPOSITORY } from '../support/programs.ts'

const page = (name: string): string => readFileSync(join(REPOSITORY, name), 'utf8')
const README = page('README.md')

/**
 * Normalizes output. Hexadecimal digits are random. Numbers and the order of rows depend on the
 * time: around midnight, the demo's events are evidence of two days. Names and columns do not
 * change.
 */
function normalized(text: string): string[] {
  const lines = text.split('\n').map((line) => line.replace(/\b[0-9a-f]{8,}\b|\d+/g, '#').replace(/[ ─]+/g, ' '))
  return lines.sort()
}

/** One page of each kind of site, and README.md. `npm run docs` runs the commands of all pages. */
const TESTED = ['README.md', 'docs/get-started.md', 'docs/install/debian.md', 'docs/operate/troubleshoot.md'] as const

for (const name of TESTED) {
  const title = `${name} shows the current output of its commands; npm run docs updates it`
  t.test(title, { skip: skipNamespaces }, async (t) => {
    const site = COMMAND_PAGES[name]
    if (site === undefined) throw new Error(`${name} is not in COMMAND_PAGES`)
    t.same(normalized(await withOutputs(page(name), site)), normalized(page(name)))
  })
}

t.test('a command that fails is reported with its output', { skip: skipNamespaces }, async (t) => {
  const failing = '```sh\necho found; exit 3\n```\n\n<!-- printed -->\n<!-- end -->\n'
  await t.rejects(withOutputs(failing, 'clone'), { message: /status 3\nfound/ })
})

t.test('every command of README.md is run by a test', async (t) => {
  const blocks = [...README.matchAll(/^```sh\n([\s\S]*?)^```\n\n(<!-- printed)?/gm)]
  const notRunAbove = blocks.filter(([, , marker]) => marker === undefined).map(([, commands = '']) => commands.trim())
  // npm test cannot run itself.
  t.same(notRunAbove, ['npm test'])
  const { scripts } = JSON.parse(page('package.json')) as { scripts: Record<string, string> }
  t.equal(scripts['start'], 'node dist/deploy/demo.js', 'what the test runs in place of npm start')
  t.match(page('.ci/run'), /^npm test /m, 'continuous integration runs it')
})

t.test('README.md has at most 150 lines', async (t) => {
  t.ok(README.split('\n').length <= 150)
})
