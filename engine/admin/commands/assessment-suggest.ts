import { type Command, Option } from 'commander'
import { itemKey } from '../../assess/rules.ts'
import { acceptedNote, crosswalk, evidenceText, suggestionsFor } from '../../assess/suggestions.ts'
import { loadTemplates } from '../../assess/templates.ts'
import { DAY_MS, systemClock } from '../../process/clock.ts'
import { Fault } from '../../process/error-codes.ts'
import { jsonOption } from '../../process/program.ts'
import { FRAMEWORK_IDS, FRAMEWORKS, type FrameworkId } from '../../store/framework.ts'
import { itemIn } from '../assessments.ts'
import { ASSESSMENT_ID } from './assessment-file.ts'
import { changeOptions, ofOrganization, show, timeText, withStore } from './context.ts'

interface SuggestFlags {
  readonly org?: string
  readonly from?: FrameworkId | 'discovery'
  readonly accept?: readonly string[]
}

/** Suggests answers from assessments and discovery, and stores those that are accepted. */
export function addSuggest(assessment: Command): void {
  const suggest = ofOrganization(
    changeOptions(
      assessment
        .command('suggest')
        .description('Show the answers that completed assessments and discovery suggest, or accept them')
        .argument('<id>', ASSESSMENT_ID),
    ),
  )
    .addOption(
      new Option('--from <source>', 'Use only assessments of this framework, or only discovery').choices([
        ...FRAMEWORK_IDS,
        'discovery',
      ]),
    )
    .option('--accept <items...>', 'Answer these items as suggested; to change one, use assessment answer')
  suggest.action((id: string, { org, from, accept }: SuggestFlags) =>
    withStore(suggest, ({ store, administration }) => {
      const organization = administration.organization(org)
      const found = administration.assessments.find(organization, id)
      const categories = store.assessments.categories(found)
      const nowMs = systemClock.nowMs()
      const suggestions = store.environment.read(() => suggestionsFor(store, found, categories, nowMs, from))
      const accepted = accept?.map((item) => {
        const suggestion = suggestions.get(itemKey(item))
        if (suggestion !== undefined) return suggestion
        throw new Fault('NOT_FOUND', `no suggestion for item ${JSON.stringify(item)}; assessment suggest lists all`)
      })
      for (const suggestion of accepted ?? []) {
        const { itemId, answer } = suggestion
        const note = acceptedNote(suggestion, itemIn(categories, itemId).note)
        administration.assessments.answer(organization, found.id, itemId, answer, note)
      }
      show(suggest, {
        columns: [
          ['Item', 'item_id'],
          ['Suggested', 'answer'],
          ['Age (days)', 'age_days', { hide: 1 }],
          ['Evidence', 'source_text', { wrap: true }],
        ],
        rows: (accepted ?? [...suggestions.values()]).map(({ itemId, answer, sources, facts }) => ({
          item_id: itemId,
          answer,
          accepted: accepted !== undefined,
          age_days: Math.max(0, ...sources.map(({ completedAtMs }) => Math.floor((nowMs - completedAtMs) / DAY_MS))),
          source_text: evidenceText({ itemId, answer, sources, ...(facts === undefined ? {} : { facts }) }),
          discovery: facts === undefined ? null : { topic: facts.topic, text: facts.text },
          sources: sources.map((source) => ({
            assessment_id: source.assessmentId,
            framework_id: source.frameworkId,
            item_id: source.itemId,
            answer: source.answer,
            completed_at: timeText(source.completedAtMs),
          })),
        })),
      })
    }),
  )
}

/** Which items of a framework the items of another one are mapped to. */
export function addCrosswalk(assessment: Command): void {
  const command = jsonOption(
    assessment
      .command('crosswalk')
      .description('Show which items of a framework have mapped items in another one')
      .argument('<from>', 'Framework that was assessed', frameworkOf)
      .argument('<to>', 'Framework to assess', frameworkOf),
  ).option('--items', 'Show every item with its mapped items instead')
  command.action((from: FrameworkId, to: FrameworkId, { items }: { items?: boolean }) => {
    const { rows, isDirect } = crosswalk(from, to)
    const mapping = isDirect ? 'published' : 'through a third framework'
    if (items) {
      show(command, {
        columns: [
          ['Item', 'item_id'],
          ['Check', 'title', { hide: 1, wrap: true }],
          [FRAMEWORKS[from], 'from', { wrap: true }],
        ],
        rows: rows.map((row) => ({ item_id: row.itemId, title: row.title, category: row.category, from: row.from })),
      })
      return
    }
    const total = (of: readonly { readonly from: readonly string[] }[]) => {
      const mapped = of.filter((row) => row.from.length > 0).length
      return { items: of.length, mapped, share: of.length === 0 ? 0 : Math.round((100 * mapped) / of.length), mapping }
    }
    show(command, {
      columns: [
        [`Category of ${FRAMEWORKS[to]}`, 'category', { wrap: true }],
        ['Items', 'items'],
        ['Mapped', 'mapped'],
        ['Percent', 'share'],
        ['Mapping', 'mapping', { hide: 1 }],
      ],
      rows: [
        ...loadTemplates()[to].categories.map(({ name }) => ({
          category: name,
          ...total(rows.filter(({ category }) => category === name)),
        })),
        { category: 'All', ...total(rows) },
      ],
    })
  })
}

function frameworkOf(text: string): FrameworkId {
  const found = FRAMEWORK_IDS.find((id) => id === text)
  if (found !== undefined) return found
  throw new Fault('USAGE', `${text}: no such framework. Available: ${FRAMEWORK_IDS.join(', ')}`)
}
