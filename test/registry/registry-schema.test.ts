import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Ajv2020 } from 'ajv/dist/2020.js'
import t from 'tap'
import { parse } from 'yaml'
import { PLATFORMS_DIR } from '../../registry/build.ts'
import { platformListSchema, registryFileSchema } from '../../registry/registry-schema.ts'
import { REPOSITORY } from '../support/programs.ts'

const ajv = new Ajv2020({ strict: false, validateFormats: false })

t.test('the schemas in the repository are those of the code (npm run docs writes them)', async (t) => {
  const read = (name: string) => JSON.parse(readFileSync(join(REPOSITORY, 'registry/schema', name), 'utf8')) as object
  t.same(read('registry-file.json'), registryFileSchema())
  t.same(read('platforms.json'), platformListSchema())
})

t.test('every built-in file agrees with its schema', async (t) => {
  const isValid = ajv.compile(platformListSchema())
  const folder = fileURLToPath(PLATFORMS_DIR)
  for (const name of readdirSync(folder)) {
    t.ok(isValid(parse(readFileSync(join(folder, name), 'utf8'))), `${name} ${ajv.errorsText(isValid.errors)}`)
  }
})

t.test('the schema accepts the example of the documentation, and finds errors in it', async (t) => {
  const isValid = ajv.compile(registryFileSchema())
  const page = readFileSync(join(REPOSITORY, 'docs/reference/registry.md'), 'utf8')
  const [, example = ''] = /```yaml\n(platforms:[\s\S]+?)```/.exec(page) ?? []
  t.ok(isValid(parse(example)), ajv.errorsText(isValid.errors))
  for (const [text, by] of [
    ['role: web', 'role: admin'],
    ['match: suffix', 'match: regex'],
    ['score: 5', 'score: 500'],
    ['vendor: Example', 'vendr: Example'],
    ['specificity: 0.8', 'specificity: 0.8, purpose: fun'],
    ['  - zapier', '  - Zapier!'],
  ] as const) {
    t.ok(example.includes(text), text)
    t.notOk(isValid(parse(example.replace(text, by))), by)
  }
})
