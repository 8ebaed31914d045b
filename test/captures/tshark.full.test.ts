import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { REPOSITORY } from '../support/programs.ts'
import type { Expectation } from './made-capture.ts'
import { type ShownName, shownByTshark } from './tshark.ts'

/**
 * A second opinion on what the builders say that they put in: tshark reads the same files, and must show the same names of the same
 * clients. Our own decoder has no part in this.
 */
const FOLDER = join(REPOSITORY, 'test/captures')

const version = spawnSync('tshark', ['--version'], { encoding: 'utf8' })
if (version.error !== undefined) {
  t.fail('tshark is needed to check the captures: install the Debian package tshark')
} else {
  t.comment(version.stdout.split('\n')[0] ?? '')
  // Two programs at a time.
  t.jobs = 2
  const folders = readdirSync(FOLDER, { withFileTypes: true }).filter((entry) => entry.isDirectory())
  for (const { name } of folders) {
    const folder = join(FOLDER, name)
    const file = readdirSync(folder).find((file) => file.startsWith('input.')) ?? ''
    const expected = JSON.parse(readFileSync(join(folder, 'expect.json'), 'utf8')) as Expectation
    if (expected.tshark === false) {
      t.test(`${name}: the README says what tshark reads otherwise`, async (t) => {
        t.match(readFileSync(join(folder, 'README.md'), 'utf8'), /tshark/)
      })
      continue
    }
    t.test(`${name}: tshark shows the same names`, async (t) => {
      const rows = await shownByTshark(join(folder, file), expected.damage !== undefined)
      // The order is not compared: when a message is complete, tshark and we need not agree.
      t.same(rows.map(lineOf(expected)).sort(), expected.names.map(lineOf(expected)).sort())
    })
  }
}

/** With the time where the case is about times. */
function lineOf(expected: Expectation): (row: ShownName) => string {
  const timed = expected.names.some(({ timeMs }) => timeMs !== undefined)
  return ({ client, name, timeMs }) => `${timed ? `${timeMs} ` : ''}${client} ${name}`
}
