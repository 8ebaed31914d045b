import { readFileSync } from 'node:fs'
import { FRAMEWORK_IDS, type FrameworkId, type LegalDuty } from '../store/framework.ts'
import { isRelation, type Relation } from './mappings.ts'

/*
 * Published facts about the frameworks, in engine/assess/frameworks/tables/: identifiers, baselines
 * and mappings, without a text of a standard. Tab-separated; lists are comma-separated.
 *
 *   identifiers.tsv  framework, identifier, baselines of the identifier
 *   mappings.tsv     framework, identifier, other framework, how the identifier relates to those of
 *                    the last column (mappings.ts), identifiers there
 *   law.tsv          reference to a law, day from which the duty applies, address of the law that
 *                    sets the day
 *   documents.tsv    beginning of references of AI Security, document, its address
 */
const TABLES_DIR = new URL('../../../engine/assess/frameworks/tables/', import.meta.url)

export interface Identifier {
  readonly id: string
  readonly baselines: readonly string[]
}

export interface Mapping {
  readonly from: FrameworkId
  readonly id: string
  readonly to: FrameworkId
  readonly relation: Relation
  readonly ids: readonly string[]
}

/** What each framework must ask for. The items of AI Security refer to its identifiers. */
export function readIdentifiers(): ReadonlyMap<FrameworkId, readonly Identifier[]> {
  const identifiers = new Map<FrameworkId, Identifier[]>(FRAMEWORK_IDS.map((id) => [id, []]))
  for (const [framework = '', id = '', baselines = ''] of rowsOf('identifiers.tsv')) {
    const known = identifiers.get(framework as FrameworkId)
    if (known === undefined) throw new Error(`identifiers.tsv: no framework ${framework}`)
    known.push({ id, baselines: listOf(baselines) })
  }
  return identifiers
}

export function readMappings(): readonly Mapping[] {
  return rowsOf('mappings.tsv').map(([from = '', id = '', to = '', relation = '', ids = '']) => {
    if (!isRelation(relation)) throw new Error(`mappings.tsv: ${from} ${id}: no relation ${relation}`)
    return { from: from as FrameworkId, id, to: to as FrameworkId, relation, ids: listOf(ids) }
  })
}

/** The legal duties, by reference. */
export function readLaw(): ReadonlyMap<string, LegalDuty> {
  return new Map(
    rowsOf('law.tsv').map(([reference = '', appliesFrom = '', source = '']) => [
      reference,
      { reference, appliesFrom, source },
    ]),
  )
}

/** The documents that AI Security refers to. */
export function readDocuments(): readonly {
  readonly prefix: string
  readonly name: string
  readonly address: string
}[] {
  return rowsOf('documents.tsv').map(([prefix = '', name = '', address = '']) => ({ prefix, name, address }))
}

function rowsOf(name: string): string[][] {
  const lines = readFileSync(new URL(name, TABLES_DIR), 'utf8').split('\n').slice(1)
  return lines.filter((line) => line !== '').map((line) => line.split('\t'))
}

function listOf(cell: string): string[] {
  return cell === '' ? [] : cell.split(',')
}
