import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { serviceSettings } from '../../api/config.ts'
import { collectorSettings } from '../../collector/config.ts'
import { PROGRAMS } from '../../deploy/release/programs.ts'
import { settingRows } from '../../engine/kernel/process/settings.ts'
import { REPOSITORY } from '../support/programs.ts'

const SETTINGS = { 'posture-collector': collectorSettings, 'posture-service': serviceSettings } as const
const PAGE = readFileSync(join(REPOSITORY, 'docs/reference/packages.md'), 'utf8')

for (const { name, unit, settings, secretFile } of PROGRAMS) {
  t.test(`${name}: the settings file names only existing settings`, async (t) => {
    const lines = readFileSync(join(REPOSITORY, settings), 'utf8').split('\n')
    const named = lines.flatMap((line) => /^#?([A-Z_]+)=/.exec(line)?.slice(1) ?? [])
    t.ok(named.length > 5)
    const known = settingRows(SETTINGS[name]).map(({ env }) => env)
    for (const variable of named) t.ok(known.includes(variable), variable)
    t.same(
      lines.filter((line) => line !== '' && !line.startsWith('#')),
      secretFile === '' ? [] : [`SVC_TOKEN_FILE=${secretFile}`],
      'all other lines are comments, so the defaults apply',
    )
  })

  t.test(`${name}: the documentation has the exposure level that systemd computes`, async (t) => {
    const logged = execFileSync('systemd-analyze', ['security', '--offline=yes', join(REPOSITORY, unit)], {
      encoding: 'utf8',
    })
    const [, exposure = ''] = /Overall exposure level for \S+: ([\d.]+)/.exec(logged) ?? []
    t.ok(Number(exposure) < 2, exposure)
    t.match(PAGE, `Overall exposure level for ${name}.service: ${exposure} `)
  })
}
