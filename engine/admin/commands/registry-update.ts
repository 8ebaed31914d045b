import { readFileSync } from 'node:fs'
import type { Command } from 'commander'
import { z } from 'zod'
import { builtInData } from '../../../registry/built-in.ts'
import { dataDifferences } from '../../../registry/file-check.ts'
import { Fault } from '../../process/error-codes.ts'
import { registryRootSetting, registryRoots } from '../../process/registry-root.ts'
import { addSettingOptions, networkList, readSettings, setting } from '../../process/settings.ts'
import { updateBytes } from '../registry-fetch.ts'
import type { RegistryChange } from '../registry-updates.ts'
import { sharedOptions, show, timeText, withStore } from './context.ts'
import { differenceColumns, differenceRow } from './registry-file.ts'

const updateSettings = z.object({
  registryRoot: registryRootSetting,
  outboundNetworks: setting(networkList().default([]), {
    flag: '--outbound-networks <networks>',
    env: 'OUTBOUND_NETWORKS',
    about: 'Allow URLs of hosts in these networks, comma-separated, as the service does; others need public addresses',
  }),
})

/** posture-admin registry update | rollback | version */
export function addRegistryUpdateCommands(registry: Command): void {
  const update = addSettingOptions(
    sharedOptions(
      registry
        .command('update')
        .description('Install a signed release of the registry for all organizations, and show what it changes')
        .argument('<from>', 'Update file, or its https URL'),
    ),
    updateSettings,
  )
    .option('--ca-file <file>', 'Trust the certificates in this PEM file instead of those of the system')
    .option('--dry-run', 'Verify the release and show what it changes, without installing it')
  update.action(async (from: string, { caFile, dryRun }: { caFile?: string; dryRun?: boolean }) => {
    const { registryRoot, outboundNetworks: allowed } = readSettings(updateSettings, {
      command: update,
      environment: process.env,
    })
    const roots = registryRoots(registryRoot)
    const bytes = await updateBytes(from, { allowed, ca: caFile === undefined ? '' : textOf(caFile) })
    await withStore(update, ({ administration: { registryUpdates } }) => {
      const change = dryRun === true ? registryUpdates.preview(bytes, roots) : registryUpdates.update(bytes, roots)
      showChange(update, change)
    })
  })

  const rollback = sharedOptions(
    registry.command('rollback').description('Restore the registry that was in use before the last update'),
  )
  rollback.action(() =>
    withStore(rollback, ({ administration }) => showChange(rollback, administration.registryUpdates.rollback())),
  )

  const version = sharedOptions(
    registry.command('version').description('Show the version of the registry in use, and what rollback restores'),
  )
  version.action(() =>
    withStore(version, ({ store }) => {
      const { inForce, state, version: inUse } = store.registryReleases
      show(version, {
        columns: [
          ['Version', 'version'],
          ['Installed', 'installed_at'],
          ['Built-in', 'built_in'],
          ['Rollback', 'rollback_to', { hide: 1 }],
          ['Key', 'key', { hide: 2 }],
          ['SHA-256', 'sha256', { hide: 3 }],
        ],
        rows: [
          {
            version: inUse,
            installed_at: timeText(inForce?.installedAtMs ?? 0),
            built_in: builtInData().version,
            rollback_to: state.installed === '' ? null : state.previous[0] || 'built-in',
            key: inForce?.keyNumber ?? null,
            sha256: inForce?.sha256 ?? null,
          },
        ],
      })
    }),
  )
}

/** The first row has the versions, so that a program need not ask for them. */
function showChange(command: Command, { before, after }: RegistryChange): void {
  const differences = dataDifferences(before.platforms, after.platforms).map(differenceRow)
  const versions = { platform_id: '', platform_name: '', change: 'version', field: '' }
  const row = { ...versions, before: before.version, after: after.version }
  show(command, { columns: differenceColumns(), rows: [row, ...differences] })
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new Fault('USAGE', `--ca-file ${file}: ${(error as NodeJS.ErrnoException).code}`, { cause: error })
  }
}
