import { type EntryKind, LEFT_OUT } from '../../engine/export/block-list.ts'
import { BLOCK_LIST_FORMATS, blockListText, formatReach, productOf } from '../../engine/export/block-list-text.ts'
import type { Platform } from '../../registry/platform.ts'
import { code, markdownTable } from './markdown.ts'

const COVERS: Readonly<Record<EntryKind, string>> = {
  exact: 'one name',
  tree: 'a domain with all names below it',
  below: 'all names below a domain',
}

/** The formats of block lists: their product, their entries, and the lines of a domain. */
export function blockListFormats(): string {
  const rows = BLOCK_LIST_FORMATS.map((format) => {
    const covers = [...formatReach(format).kinds].map((kind) => COVERS[kind]).join(', ')
    return [code(format), productOf(format), covers, sampleLines(format).map(code).join(' ')]
  })
  return markdownTable(['Format', 'Loaded by', 'Entries for', 'Lines of deepseek.com and all names below it'], rows)
}

function sampleLines(format: (typeof BLOCK_LIST_FORMATS)[number]): string[] {
  const { kinds } = formatReach(format)
  const entry = {
    kind: kinds.has('tree') ? 'tree' : 'exact',
    domain: 'deepseek.com',
    platform: {} as Platform,
  } as const
  const list = { entries: [entry], platforms: 1, leftOut: [], incomplete: 0 }
  const selection = { blocks: 'not-approved', riskMin: 0 } as const
  const text = blockListText(list, format, { organization: '', selection, timeMs: 0 })
  return text.split('\n').flatMap((line) => (line.includes('deepseek.com') ? [line.trim()] : []))
}

/** Why a rule is not in a list. */
export function leftOutReasons(): string {
  const rows = Object.entries(LEFT_OUT).map(([reason, about]) => [code(reason), `The rule ${about}`])
  return markdownTable(['Reason', 'Meaning'], rows)
}
