import type { Command } from 'commander'
import { compareAssessments } from '../../assess/compare.ts'
import { Fault } from '../../process/error-codes.ts'
import { ASSESSMENT_ID } from './assessment-file.ts'
import { ofOrganization, sharedOptions, show, withStore } from './context.ts'

/** What changed between two assessments of a framework, and why the score moved. */
export function addCompare(assessment: Command): void {
  const compare = ofOrganization(
    sharedOptions(
      assessment
        .command('compare')
        .description('Show what changed between two assessments of a framework, and why the score moved')
        .argument('<before>', ASSESSMENT_ID)
        .argument('<after>', ASSESSMENT_ID),
    ),
  )
  compare.action((idBefore: string, idAfter: string, { org }: { org?: string }) =>
    withStore(compare, ({ store, administration }) => {
      const organization = administration.organization(org)
      const before = administration.assessments.find(organization, idBefore)
      const after = administration.assessments.find(organization, idAfter)
      if (before.frameworkId !== after.frameworkId) {
        throw new Fault('CONFLICT', `the first is of ${before.frameworkId}, the second of ${after.frameworkId}`)
      }
      const found = compareAssessments(store.assessments.categories(before), store.assessments.categories(after))
      const changed = found.items.map(({ itemId, title, category, was, now, effect }) => ({
        item_id: itemId,
        title,
        category,
        before: was ?? 'absent',
        after: now ?? 'absent',
        effect: effect ?? null,
      }))
      show(compare, {
        columns: [
          ['Item', 'item_id'],
          ['Check', 'title', { hide: 1, wrap: true }],
          ['Before', 'before'],
          ['After', 'after'],
          ['Points', 'effect'],
        ],
        rows: [
          ...changed,
          {
            item_id: 'Other effects',
            title: `${found.unchanged} items are unchanged`,
            before: '',
            after: '',
            effect: found.otherEffects,
          },
          { item_id: 'Score', title: '', before: found.scoreBefore, after: found.score, effect: scoreChange(found) },
        ],
      })
    }),
  )
}

function scoreChange({ scoreBefore, score }: { scoreBefore: number | null; score: number | null }): number | null {
  return scoreBefore === null || score === null ? null : score - scoreBefore
}
