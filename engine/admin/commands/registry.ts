import type { Command } from 'commander'
import { z } from 'zod'
import { type Catalog, loadCatalog } from '../../../registry/catalog.ts'
import { catalogStats, Lookup } from '../../../registry/lookup.ts'
import type { Platform } from '../../../registry/platform.ts'
import { PLATFORM_TYPES } from '../../../registry/platform-type.ts'
import { RegistryFileError } from '../../../registry/registry-file.ts'
import { Fault } from '../../process/error-codes.ts'
import { addSettingOptions, readSettings, setting } from '../../process/settings.ts'
import type { Shown } from '../../process/table.ts'
import { show } from './context.ts'

const registrySettings = z.object({
  registry: setting(z.string().default(''), {
    flag: '--registry <file>',
    env: 'REGISTRY_FILE',
    about: 'YAML or JSON file that adds, overrides or disables platforms',
  }),
})

/** posture-admin registry list | search | show | check | stats */
export function addRegistryCommands(program: Command): void {
  const registry = program.command('registry').description('the AI platforms that are known, and their domains')

  const list = options(registry.command('list').description('show all platforms'))
  list.action(() => show(list, platformRows(catalogOf(list).platforms)))

  const search = options(
    registry.command('search <text>').description('find platforms by name, vendor, type or domain'),
  )
  search.action((text: string) => show(search, platformRows(new Lookup(catalogOf(search)).search(text))))

  const one = options(registry.command('show <id>').description('show a platform with its domains and its risk'))
  one.action((id: string) => {
    const platform = new Lookup(catalogOf(one)).show(id)
    if (platform === undefined) {
      throw new Fault('NOT_FOUND', `no platform ${JSON.stringify(id)}; posture-admin registry search finds ids`)
    }
    show(one, domainRows(platform))
  })

  const check = options(
    registry.command('check <name...>').description('say which platform a name belongs to, and by which rule'),
  )
  check.action((names: string[]) => show(check, checkRows(new Lookup(catalogOf(check)), names)))

  const stats = options(registry.command('stats').description('count platforms and domains by type'))
  stats.action(() => show(stats, statsRows(catalogOf(stats))))
}

function options(command: Command): Command {
  return addSettingOptions(command, registrySettings).option('--json', 'print JSON on a terminal, too')
}

/** The registry, changed by the operator's file; here a fault in that file ends the command, since the file is what is looked at. */
function catalogOf(command: Command): Catalog {
  const { registry } = readSettings(registrySettings, { command, environment: process.env })
  try {
    return loadCatalog(registry === '' ? {} : { file: registry })
  } catch (error) {
    if (error instanceof RegistryFileError) throw new Fault('REGISTRY_FILE', error.message, { cause: error })
    throw error
  }
}

function platformRows(platforms: readonly Platform[]): Shown {
  return {
    columns: [
      ['Id', 'id'],
      ['Platform', 'platform'],
      ['Vendor', 'vendor'],
      ['Type', 'type'],
      ['Domains', 'domains'],
      ['Risk', 'risk'],
    ],
    rows: platforms.map((platform) => ({
      id: platform.id,
      platform: platform.name,
      vendor: platform.vendor,
      type: platform.platformType,
      category: platform.category,
      url: platform.url,
      domains: platform.domains.length,
      risk: platform.risk.score,
    })),
  }
}

function domainRows(platform: Platform): Shown {
  return {
    columns: [
      ['Platform', 'platform'],
      ['Domain', 'domain'],
      ['Match', 'match'],
      ['Role', 'role'],
      ['Specificity', 'specificity'],
      ['Risk', 'risk'],
      ['Why', 'why'],
    ],
    rows: platform.domains.map((domain) => ({
      platform: platform.name,
      vendor: platform.vendor,
      type: platform.platformType,
      domain: domain.domain,
      match: domain.match,
      role: domain.role,
      specificity: domain.specificity,
      risk: platform.risk.score,
      why: platform.risk.why,
    })),
  }
}

function checkRows(lookup: Lookup, names: readonly string[]): Shown {
  return {
    columns: [
      ['Name', 'name'],
      ['Platform', 'platform'],
      ['Type', 'type'],
      ['Rule', 'rule'],
      ['Match', 'match'],
      ['Role', 'role'],
      ['Specificity', 'specificity'],
    ],
    rows: names.map((name) => {
      const rule = lookup.check(name)
      if (rule === undefined) return { name, platform: null, match: 'none' }
      const { domain, match, role, specificity, platform } = rule
      return {
        name,
        id: platform.id,
        platform: platform.name,
        type: platform.platformType,
        rule: domain,
        match,
        role,
        specificity,
      }
    }),
  }
}

function statsRows(catalog: Catalog): Shown {
  const { byType, platforms, domains } = catalogStats(catalog)
  const rows = Object.entries(byType).map(([type, counts]) => ({
    type,
    category: PLATFORM_TYPES[type as keyof typeof PLATFORM_TYPES].category,
    ...counts,
  }))
  return {
    columns: [
      ['Type', 'type'],
      ['Category', 'category'],
      ['Platforms', 'platforms'],
      ['Domains', 'domains'],
    ],
    rows: [...rows, { type: 'all', category: '', platforms, domains }],
  }
}
