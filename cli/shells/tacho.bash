# bash completion of tacho, tacho-record and tacho-report: `tacho complete` prints the candidates.

_tacho() {
  # bash divides words at : and =, too. Words of the line up to the cursor, divided at blanks alone:
  local line=${COMP_LINE:0:COMP_POINT} words=() i word
  for ((i = 0; i <= COMP_CWORD; ++i)); do
    word=${COMP_WORDS[i]}
    if [[ $i == 0 || $line == [[:blank:]]* ]]; then
      line=${line#"${line%%[![:blank:]]*}"}
      words+=("")
    fi
    if [[ $i == "$COMP_CWORD" ]]; then word=$line; fi
    words[${#words[@]} - 1]+=$word
    line=${line#"$word"}
  done
  # Without their quotes. `quote`: that of the word at the cursor, which is still open.
  local quote="" last=$((${#words[@]} - 1))
  for ((i = 1; i <= last; ++i)); do
    word=${words[i]}
    case $word in
      [\"\']*)
        if [[ $i == "$last" ]]; then quote=${word:0:1}; fi
        word=${word:1}
        words[i]=${word%[\"\']}
        ;;
      *) words[i]=${word//\\/} ;;
    esac
  done
  case ${words[0]##*/} in
    tacho-record) words=(tacho record "${words[@]:1}") ;;
    tacho-report) words=(tacho "${words[@]:1}") ;;
  esac

  COMPREPLY=()
  local current=${words[${#words[@]} - 1]} head=""
  # readline replaces only what follows the last : or =, if that divides words.
  if [[ -z $quote && $current == *[:=]* ]]; then
    word=${current##*[:=]}
    [[ $COMP_WORDBREAKS == *[:=]* ]] && head=${current%"$word"}
  fi
  local candidate is_open=yes
  while IFS=$'\t' read -r candidate _; do
    [[ $candidate == *[/=:,] ]] || is_open=no
    candidate=${candidate#"$head"}
    if [[ -z $quote && $candidate == *[!A-Za-z0-9_@%+=:,./~^-]* ]]; then
      printf -v candidate %q "$candidate"
      candidate=${candidate/#\\~/\~}
    fi
    COMPREPLY+=("$candidate")
  done < <(command tacho complete "${words[@]:1}" 2>/dev/null)
  # No blank after a candidate that is not the end of a word.
  if [[ ${#COMPREPLY[@]} -gt 0 && $is_open == yes ]]; then compopt -o nospace 2>/dev/null; fi
}

complete -F _tacho tacho tacho-record tacho-report
