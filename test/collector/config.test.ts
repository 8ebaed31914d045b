import { Command } from 'commander'
import t from 'tap'
import { collectorSettings, lanesFor, syslogIsOn } from '../../collector/config.ts'
import { addSettingOptions, readSettings } from '../../engine/kernel/process/settings.ts'

for (const [source, wanted, cores, lanes] of [
  ['interface', undefined, 1, 0],
  ['interface', undefined, 2, 0],
  ['interface', undefined, 3, 1],
  ['interface', undefined, 16, 4],
  ['interface', 2, 2, 2],
  ['file', undefined, 1, 1],
  ['file', undefined, 2, 1],
  ['file', undefined, 4, 3],
  ['file', undefined, 16, 4],
  ['file', 0, 16, 0],
  ['file', 2, 1, 1],
  ['file', 2, 2, 1],
  ['file', 2, 3, 2],
  ['file', 8, 16, 8],
] as const) {
  t.equal(lanesFor(source, wanted, cores), lanes, `${source}, setting ${wanted}, ${cores} cores`)
}

const TOKEN = ['--token', `svc_mt_${'4'.repeat(48)}`]

function settingsOf(words: readonly string[], environment: NodeJS.ProcessEnv) {
  const command = addSettingOptions(new Command(), collectorSettings).parse([...TOKEN, ...words], { from: 'user' })
  return readSettings(collectorSettings, { command, environment })
}

for (const [words, environment, isOn] of [
  ['', {}, false],
  ['--syslog', {}, true],
  ['--no-https', {}, true],
  ['', { HTTPS_ENABLED: 'false' }, true],
  ['', { SYSLOG_PROTOCOL: 'tls' }, true],
  ['', { SYSLOG_PORT: '6514' }, true],
  ['--syslog-port 6514', {}, true],
  ['--syslog-protocol udp', {}, true],
  ['--syslog off', { SYSLOG_PORT: '6514' }, false],
  ['--no-https --syslog off', {}, false],
] as const) {
  const settings = settingsOf(
    words.split(' ').filter((word) => word !== ''),
    environment,
  )
  t.equal(syslogIsOn(settings), isOn, `${words} ${JSON.stringify(environment)}`)
}

t.same(settingsOf([], { PROXY_PORTS: 'off' }).proxyPorts, [])
t.same(settingsOf([], { PROXY_PORTS: '1080, 3128' }).proxyPorts, [1080, 3128])
t.throws(() => settingsOf([], { PROXY_PORTS: 'none' }), {
  message: 'PROXY_PORTS: expected off, or comma-separated ports from 1 to 65535, found "none"',
})

const [ONE, OTHER] = ['ab'.repeat(32), 'cd'.repeat(32)]
for (const [given, pins] of [
  ['', ''],
  [ONE.toUpperCase(), ONE],
  [`${ONE.slice(0, 2)}:${ONE.slice(2)}`, ONE],
  [`sha256-cert:${ONE}`, ONE],
  [`sha256-key:${ONE}, SHA256-CERT:${OTHER}`, `sha256-key:${ONE},${OTHER}`],
] as const) {
  t.equal(settingsOf([], { SERVICE_FINGERPRINT: given }).fingerprint, pins, given)
}
for (const wrong of ['ab', `sha1:${ONE}`, `${ONE},`, `${ONE},${OTHER},${ONE}`]) {
  t.throws(
    () => settingsOf([], { SERVICE_FINGERPRINT: wrong }),
    { message: /^SERVICE_FINGERPRINT: expected the 64 hex/ },
    wrong,
  )
}
