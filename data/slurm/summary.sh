#!/usr/bin/env bash
#SBATCH --job-name=quipu-summary
#SBATCH --ntasks=1
#SBATCH --time=00:05:00
#SBATCH --output=%x-%j.log
#
# summary.sh FOLDER: one table (TSV) of a sweep's results, FOLDER/MIXER-SEED.json, to stdout and FOLDER/summary.tsv: for
# each mixer the number of seeds, and mean and standard deviation of bits per byte and of perplexity per word, the
# best first. Names the cells that were begun and have no result, and then ends with status 1.
set -euo pipefail
folder=${1:?usage: summary.sh FOLDER}
shopt -s nullglob

results=("$folder"/*.json)
[ ${#results[@]} -gt 0 ] || { echo "summary.sh: $folder: no results (*.json)" >&2; exit 1; }

# The number of the first "KEY": in a JSON file.
number() {
  tr -d '\n' <"$2" | grep -oE "\"$1\"[[:space:]]*:[[:space:]]*[-+0-9.eE]+" | head -n 1 | sed -E 's/.*:[[:space:]]*//'
}

for result in "${results[@]}"; do
  cell=$(basename "$result" .json)
  if ! bits=$(number bits_per_byte "$result") || ! words=$(number perplexity_per_word "$result"); then
    echo "summary.sh: $result: has no bits_per_byte and perplexity_per_word; is it from eval-ppl --json?" >&2
    exit 1
  fi
  printf '%s\t%s\t%s\n' "${cell%-*}" "$bits" "$words"
done | LC_ALL=C awk -F '\t' '
  function deviation(n, sum, squares) {
    return n < 2 || squares * n <= sum * sum ? 0 : sqrt((squares - sum * sum / n) / (n - 1))
  }
  { n[$1]++; bits[$1] += $2; bits2[$1] += $2 * $2; words[$1] += $3; words2[$1] += $3 * $3 }
  END {
    for (m in n)
      printf "%s\t%d\t%.4f\t%.4f\t%.2f\t%.2f\n", m, n[m], bits[m] / n[m], deviation(n[m], bits[m], bits2[m]),
             words[m] / n[m], deviation(n[m], words[m], words2[m])
  }' | LC_ALL=C sort -t $'\t' -k 3,3n -k 1,1 >"$folder/summary.part"
{
  printf 'mixer\tseeds\tbits_per_byte\tbits_per_byte_sd\tperplexity_per_word\tperplexity_per_word_sd\n'
  cat "$folder/summary.part"
} >"$folder/summary.tsv"
rm "$folder/summary.part"
cat "$folder/summary.tsv"

missing=()
for log in "$folder"/*.jsonl; do
  [ -f "${log%.jsonl}.json" ] || missing+=("$(basename "$log" .jsonl)")
done
if [ ${#missing[@]} -gt 0 ]; then
  echo "summary.sh: $folder: without a result: ${missing[*]}; submit the sweep again to go on" >&2
  exit 1
fi
