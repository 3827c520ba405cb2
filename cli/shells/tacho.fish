# fish completion of tacho, tacho-record and tacho-report: `tacho complete` prints the candidates.

function __tacho_candidates
    set -l words (commandline -opc)
    switch (string replace -r '.*/' '' -- $words[1])
        case tacho-record
            set words tacho record $words[2..]
    end
    # A quote that is still open cannot be unescaped.
    set -l word (string unescape -- "$(commandline -ct)"; or string replace -r '^["\']' '' -- "$(commandline -ct)")
    command tacho complete $words[2..] "$word" 2>/dev/null
end

complete -c tacho -f -a '(__tacho_candidates)'
complete -c tacho-record -f -a '(__tacho_candidates)'
complete -c tacho-report -f -a '(__tacho_candidates)'
