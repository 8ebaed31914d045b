import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import t from 'tap'
import { Administration } from '../../../engine/admin/administration.ts'
import { serveConsole } from '../../support/console.ts'
import { IMPLEMENTATIONS } from '../../support/https.ts'
import { matching, other } from '../../support/many-lines.ts'
import { REPOSITORY } from '../../support/programs.ts'
import { matcher, registries } from '../../support/store.ts'

const capture = (name: string): Buffer => readFileSync(join(REPOSITORY, 'test/captures', name))
const text = (html: string): string =>
  html
    .replace(/<[^>]*>/g, ' ')
    .replace(/\s+/g, ' ')
    .trim()

for (const implementation of IMPLEMENTATIONS) {
  t.test(`${implementation}: a capture shows the platforms of its names`, async (t) => {
    const { signIn } = await serveConsole(t, { implementation })
    const browser = signIn('ada@acme.example', 'member')
    const form = await browser.get('/try-file')
    t.equal(form.status, 200)
    t.match(form.text, /<form [^>]*enctype="multipart\/form-data"/)
    const answer = await browser.postFile('/try-file', capture('demo/input.pcap'), 'office <b>.pcap')
    t.equal(answer.status, 200)
    const shown = text(answer.text)
    t.match(shown, 'office &lt;b>.pcap')
    t.match(shown, /a capture in pcap format, [\d.]+ KiB/)
    t.match(shown, /AI platforms \d+ \d+ not approved Matches 90 of 129 names Packets 542 read/)
    for (const name of ['ChatGPT', 'GitHub Copilot', 'Claude']) t.match(shown, name)
    t.match(shown, 'What a sensor could not see')
    t.notMatch(answer.text, /<script(?![^>]* src=)|<style|style=/)
  })
}
