import t from 'tap'
import { RULE_BYTES_MAX, readFormatRule } from '../../../engine/admin/format-rule-file.ts'

t.test('rules of each kind', async (t) => {
  for (const yaml of [
    "name: a\ndelimiter: ';'\nfields: { client: 1, host: 2 }",
    'name: a\njson: true\nfields: { client: a.b, host: c, time: [d, e] }',
    "name: a\npattern: '(?<client>\\S+) (?<host>\\S+)'\nblocked: [NO]",
  ])
    t.notOk('errors' in readFormatRule(Buffer.from(yaml)), yaml)
})

t.test('errors have their places', async (t) => {
  const columns = "name: a\ndelimiter: ';'\n"
  const cases: readonly (readonly [yaml: string, ...errors: RegExp[]])[] = [
    ['', /^expected a name, and one of delimiter, json and pattern$/],
    ['name: a', /^expected a name, and one of/],
    ["name: a\ndelimiter: ';'\npattern: x", /^expected a name, and one of/],
    ['a: [', /^line 1: not YAML: /],
    ['['.repeat(8000), /^line 1: more than 32 levels of nesting/],
    [`${columns}`, /^fields: expected the fields client and host$/],
    [`${columns}fields: { client: 1 }`, /^line 3, fields\.host: expected the number of a column/],
    [
      `${columns}fields:\n  client: 0\n  host: x`,
      /^line 4, fields\.client: expected/,
      /^line 5, fields\.host: expected/,
    ],
    [`${columns}fields: { client: 1, host: 2, port: 3 }`, /unknown key "port"/],
    ["name: a b\ndelimiter: ';'\nfields: { client: 1, host: 2 }", /^line 1, name: expected printable ASCII/],
    ["name: a\ndelimiter: '\"'\nfields: { client: 1, host: 2 }", /^line 2, delimiter: expected one to three/],
    ["name: a\npattern: '(?<client>x'", /^line 2, pattern: error parsing regexp: missing closing \)/],
    ["name: a\npattern: '(?<client>x)(?<name>x)'", /groups named time, client, .*found name/],
    ["name: a\npattern: '(?<host>x)'", /missing client$/],
    [
      "name: a\npattern: '(?<client>x)(?<host>(?:[a-z]{1,500}x){1,2}y{900}\\pL{900})\\pL{900}\\pL{900}'",
      /simpler pattern/,
    ],
    ["name: a\npattern: '(?<client>x)(?<host>((a{100}){100}){100})'", /invalid repeat count/],
  ]
  for (const [yaml, ...expected] of cases) {
    const rule = readFormatRule(Buffer.from(yaml))
    const errors = 'errors' in rule ? rule.errors : []
    t.equal(errors.length, expected.length, `${yaml}: ${errors.join('; ')}`)
    for (const [index, error] of expected.entries()) t.match(errors[index], error, yaml)
  }
  const large = readFormatRule(Buffer.alloc(RULE_BYTES_MAX + 1, 0x20))
  t.match(large, { errors: [/^larger than/] })
  const aliases = `name: a\njson: true\nfields: &f { client: a, host: b }\nblocked: *f`
  t.ok('errors' in readFormatRule(Buffer.from(aliases)))
})
