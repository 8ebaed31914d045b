import { type Command, Option } from 'commander'
import { type Catalog, checkChanges } from '../../../registry/catalog.ts'
import { type EntryDifference, fileDifferences, fileProblems } from '../../../registry/file-check.ts'
import { RegistryFileError, readRegistryText, registryFileText } from '../../../registry/registry-file.ts'
import { Fault } from '../../process/error-codes.ts'
import type { Shown } from '../../process/table.ts'
import { sharedOptions, show } from './context.ts'
import { ofOrganizationOrEvery } from './registry-own.ts'

/** Runs work on the registry that a command's options name. */
export type WithCatalog = (command: Command, work: (catalog: Catalog) => void) => Promise<void>

/** posture-admin registry validate | diff */
export function addRegistryFileCommands(registry: Command, withCatalog: WithCatalog): void {
  const validate = fileCommand(
    registry.command('validate'),
    'Verify a registry file, and show each problem with its line',
  )
  validate.addOption(new Option('--strict', 'Reject a file with warnings'))
  validate.action((file: string, { strict = false }: { strict?: boolean }) =>
    withCatalog(validate, ({ platforms }) => {
      const text = textOf(file)
      const problems = fileProblems(file, text, platforms)
      if (problems.length > 0) {
        show(validate, {
          columns: [
            ['Line', 'line'],
            ['Severity', 'severity', { hide: 1 }],
            ['Entry', 'entry'],
            ['Field', 'field', { wrap: true }],
            ['Problem', 'problem', { wrap: true }],
          ],
          rows: problems.map(({ line = null, ...problem }) => ({ file, line, ...problem })),
        })
      }
      const rejected = problems.filter(({ severity }) => strict || severity === 'error').length
      if (rejected > 0) throw new Fault('REGISTRY_FILE', `${file}: problems: ${rejected}`)
    }),
  )

  const diff = fileCommand(registry.command('diff'), 'Show what a registry file would change')
  diff.action((file: string) =>
    withCatalog(diff, ({ platforms }) => {
      show(diff, { columns: differenceColumns(), rows: differencesOf(file, platforms).map(differenceRow) })
    }),
  )
}

export function differenceColumns(): Shown['columns'] {
  return [
    ['Id', 'platform_id'],
    ['Platform', 'platform_name', { hide: 2 }],
    ['Change', 'change'],
    ['Field', 'field'],
    ['Before', 'before', { hide: 1, wrap: true }],
    ['After', 'after', { wrap: true }],
  ]
}

export function differenceRow({ platformId, name, ...difference }: EntryDifference) {
  return { platform_id: platformId, platform_name: name, ...difference }
}

function fileCommand(command: Command, about: string): Command {
  const described = command.description(about).argument('<file>', 'Registry file, YAML or JSON')
  return ofOrganizationOrEvery(sharedOptions(described))
}

function differencesOf(file: string, platforms: Catalog['platforms']) {
  try {
    const changes = readRegistryText(file, registryFileText(file))
    checkChanges(platforms, file, changes)
    return fileDifferences(platforms, changes)
  } catch (error) {
    throw faultOf(error)
  }
}

function textOf(file: string): string {
  try {
    return registryFileText(file)
  } catch (error) {
    throw faultOf(error)
  }
}

function faultOf(error: unknown): unknown {
  return error instanceof RegistryFileError ? new Fault('REGISTRY_FILE', error.message, { cause: error }) : error
}
