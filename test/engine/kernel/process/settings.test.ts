import { Command } from 'commander'
import t from 'tap'
import { z } from 'zod'
import { isoSeconds } from '../../../../engine/kernel/process/clock.ts'
import {
  addSettingOptions,
  oneOf,
  onOrOff,
  portNumber,
  readSettings,
  setting,
  settingRows,
} from '../../../../engine/kernel/process/settings.ts'

const schema = z.object({
  port: setting(portNumber().default(9090), { flag: '--port <port>', env: 'PORT', about: 'A port' }),
  https: setting(onOrOff().default(true), { flag: '--no-https', env: 'HTTPS_ENABLED', about: 'Turn HTTPS off' }),
  protocol: setting(oneOf(['tls', 'tcp', 'udp']).default('tls'), { env: 'PROTOCOL', about: 'A protocol' }),
  token: setting(z.string().regex(/^t-/, 'expected t- in front'), {
    flag: '--token <token>',
    env: 'TOKEN',
    about: 'The token; keep it secret',
    secret: true,
  }),
})

function read(flags: readonly string[], environment: NodeJS.ProcessEnv = {}): z.output<typeof schema> {
  const command = addSettingOptions(new Command().exitOverride(), schema)
  command.parse([...flags], { from: 'user' })
  return readSettings(schema, { command, environment })
}

const TOKEN = ['--token', 't-1']
const defaults = { port: 9090, https: true, protocol: 'tls', token: 't-1' }
const GOOD: Readonly<
  Record<string, readonly [flags: readonly string[], environment: NodeJS.ProcessEnv, found: object]>
> = {
  defaults: [TOKEN, {}, defaults],
  'the variable takes precedence over the default': [TOKEN, { PORT: '1' }, { ...defaults, port: 1 }],
  'the flag takes precedence over the variable': [[...TOKEN, '--port', '2'], { PORT: '1' }, { ...defaults, port: 2 }],
  'a flag that disables': [[...TOKEN, '--no-https'], { HTTPS_ENABLED: 'true' }, { ...defaults, https: false }],
  'a variable that disables': [TOKEN, { HTTPS_ENABLED: 'FALSE' }, { ...defaults, https: false }],
  'an empty variable counts as unset': [TOKEN, { PORT: '' }, defaults],
  'values in any case': [TOKEN, { PROTOCOL: 'UDP' }, { ...defaults, protocol: 'udp' }],
}
for (const [name, [flags, environment, found]] of Object.entries(GOOD)) {
  t.test(`read: ${name}`, async (t) => t.same(read(flags, environment), found))
}

const BAD: Readonly<
  Record<string, readonly [flags: readonly string[], environment: NodeJS.ProcessEnv, message: string | RegExp]>
> = {
  'a port of 0': [[...TOKEN, '--port', '0'], {}, '--port: expected a whole number from 1 to 65535, found "0"'],
  'a port with a sign': [TOKEN, { PORT: '+1' }, /^PORT: expected a whole number/],
  'a port with too many digits': [TOKEN, { PORT: '9'.repeat(400) }, /^PORT: expected a whole number/],
  'neither true nor false': [TOKEN, { HTTPS_ENABLED: 'maybe' }, 'HTTPS_ENABLED: expected true or false, found "maybe"'],
  'an unknown value': [TOKEN, { PROTOCOL: 'sctp' }, 'PROTOCOL: expected one of tls, tcp, udp, found "sctp"'],
  'a missing value': [[], {}, '--token or TOKEN is required: The token'],
  'a secret is not repeated': [['--token', 'hunter2'], {}, '--token: expected t- in front'],
}
for (const [name, [flags, environment, message]] of Object.entries(BAD)) {
  t.test(`rejected: ${name}`, async (t) => {
    t.throws(() => read(flags, environment), { code: 'USAGE', message })
  })
}

t.test('help and documentation come from the same rows', async (t) => {
  t.same(
    settingRows(schema).map((row) => row.name),
    ['port', 'https', 'protocol', 'token'],
  )
  const help = addSettingOptions(new Command(), schema).helpInformation()
  t.match(help, /--port <port>\s+A port \(env: PORT, default: 9090\)/)
})

t.test('arguments and repeated flags are settings; a schema may be that of several', async (t) => {
  const word = z.string()
  const both = z.object({
    from: setting(word, { argument: '<from>', about: 'The first' }),
    to: setting(word.optional(), { argument: '[to]', about: 'The second' }),
    roles: setting(z.array(oneOf(['a', 'b'])).default([]), { flag: '--role <role>', about: 'Grant these roles' }),
  })
  const readBoth = (...words: readonly string[]) => {
    const command = addSettingOptions(
      new Command().exitOverride().action(() => {}),
      both,
    )
    command.parse([...words], { from: 'user' })
    return readSettings(both, { command, environment: {} })
  }
  t.same(readBoth('x'), { from: 'x', roles: [] })
  t.same(readBoth('--role', 'a', 'x', '--role', 'B', 'y'), { from: 'x', to: 'y', roles: ['a', 'b'] })
  t.throws(() => readBoth('x', '--role', 'a', '--role', 'c'), { message: '--role: expected one of a, b, found "c"' })
  const help = addSettingOptions(new Command(), both).helpInformation()
  t.match(help, /\[options\] <from> \[to\]/)
  t.match(help, /--role <role>\s+Grant these roles \(choices: a, b\)/)
})

t.test('times are ISO 8601 with seconds', async (t) => {
  for (const text of ['2026-11-20T09:15:02Z', '2026-11-20T23:59:59Z', '1969-12-31T23:59:59Z', '2026-11-20T00:00:00Z']) {
    for (const ms of [0, 1, 999]) t.equal(isoSeconds(Date.parse(text) + ms), text)
  }
  t.throws(() => isoSeconds(Number.NaN), RangeError)
})
